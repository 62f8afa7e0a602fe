//! Servers of Dunlin over shared memory: `Server` with one thread, and the same services without
//! it. A service of the poll API is called by the client of `dunlin-shm`, a typed service by a
//! typed client.

use std::net::SocketAddr;

use anyhow::anyhow;
use dunlin::service::{Context, Postcard};
use dunlin::{Auto, Local, Nexus, ReqType, Rpc, Running, Server, Shm, Tasks, service};
use dunlin_tokio::OnTokio;
use serde_bytes::ByteBuf;

use super::dunlin::{Polled, options};
use super::{Peer, drive};
use crate::load::Load;
use crate::work;

const ECHO: ReqType = ReqType(1);

/// The experiment's work as a service.
#[service(codec = Postcard, send)]
trait Echo {
    /// Answers with words, each of which depends on all words of the request.
    #[method(2)]
    fn answer(words: ByteBuf) -> ByteBuf;
}

struct Service;

fn answer(words: &ByteBuf) -> ByteBuf {
    let mut response = vec![0; words.len()];
    work::answer(words, &mut response);
    ByteBuf::from(response)
}

impl Echo for Service {
    async fn answer(&self, words: ByteBuf, _: Context<'_>) -> ByteBuf {
        answer(&words)
    }
}

impl EchoSend for Service {
    async fn answer(&self, words: ByteBuf, _: Context<'_>) -> ByteBuf {
        answer(&words)
    }
}

/// `Server` with a service of the poll API.
pub(crate) struct PolledServer;

/// Typed services; the name states where their handlers run.
pub(crate) enum Typed {
    /// On the endpoint's thread, without `Server`.
    Local,
    /// On the endpoint's thread of a `Server`.
    Server,
    /// On a runtime of one thread.
    Tokio,
}

impl Peer for PolledServer {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let on = |rpc: &mut Rpc<Auto, ()>| {
            rpc.on(ECHO, |(), request, cx| {
                let data = request.data();
                request.reply(cx, data.len(), |out| work::answer(data, out));
            });
        };
        let running = Server::builder().poll(|_| (), on).start("127.0.0.1:0")?;
        serve_for_ever(&running, ready)
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        Polled::<Shm>::default().call(address, load)
    }
}

impl Peer for Typed {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        match self {
            Self::Local => {
                let nexus = Nexus::bind("127.0.0.1:0")?;
                let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default())?);
                local.serve_typed(EchoServer(Service));
                ready(&nexus.address().to_string())?;
                local.block_on(|_| std::future::pending())
            }
            Self::Server => {
                let server = Server::builder().service(|_| EchoServer(Service));
                serve_for_ever(&server.start("127.0.0.1:0")?, ready)
            }
            Self::Tokio => {
                let runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = { runtime }.worker_threads(1).build()?;
                let handle = runtime.handle().clone();
                let make = move |_| EchoSendServer(Service).on(&handle);
                let server = Server::builder().service(make);
                serve_for_ever(&server.start("127.0.0.1:0")?, ready)
            }
        }
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let nexus = Nexus::bind("127.0.0.1:0")?;
        let mut local: Local<Shm> = Local::new(nexus.endpoint(Tasks::default())?);
        let session = local.connect_with(address.parse::<SocketAddr>()?, &options())?;
        local.block_on(|cx| async move {
            cx.connected(session).await?;
            let client = EchoClient::new(cx, session);
            // The client writes into the response's memory for the next request, as programs with
            // typed messages do.
            let call = async |request: Vec<u8>| {
                let answer = client.answer(&ByteBuf::from(request)).await;
                answer.map_err(|failure| anyhow!("{failure}"))
            };
            drive(load, call).await
        })
    }
}

/// The parent kills this process.
fn serve_for_ever(
    running: &Running,
    ready: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    ready(&running.address().to_string())?;
    loop {
        std::thread::park();
    }
}
