//! Dunlin for ordinary async programs: a `Channel`, whose hub has a thread of its own, called from
//! a runtime of one thread. The two threads share the client's processor.

use anyhow::Context;
use dunlin::{Auto, Hub, Nexus, NexusBuilder, ReqType, Rpc};

use super::{Peer, drive_tasks, runtime};
use crate::load::Load;
use crate::work;

const ECHO: ReqType = ReqType(1);

/// Channels over shared memory, or over UDP.
pub(crate) struct Channels {
    pub(crate) is_udp: bool,
}

impl Channels {
    fn nexus(&self) -> NexusBuilder {
        Nexus::builder().without_unix(self.is_udp)
    }
}

impl Peer for Channels {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let nexus = self.nexus().bind("127.0.0.1:0")?;
        let mut rpc: Rpc<Auto, ()> = nexus.endpoint(())?;
        rpc.on(ECHO, |(), request, cx| {
            let data = request.data();
            request.reply(cx, data.len(), |out| work::answer(data, out));
        });
        ready(&nexus.address().to_string())?;
        rpc.run_until(|_| false);
        Ok(())
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let hub = Hub::builder().listen("127.0.0.1:0").nexus(self.nexus());
        let hub = hub.start().context("the hub does not start")?;
        let channel = hub.channel().address(address).open()?;
        let size = load.size();
        runtime()?.block_on(async {
            let call = move |request: Vec<u8>| {
                let call = channel.call(ECHO, &request).room(size);
                async { Ok(call.await?) }
            };
            drive_tasks(load, call).await
        })
    }
}
