//! Dunlin as a user gets it, over one transport: endpoints that spin for a while and then sleep,
//! one session with a window for all calls in flight. Uses the poll API, or futures.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::net::SocketAddr;

use dunlin::{
    Caller, ConnectOptions, Cx, Done, Local, MsgBuf, Nexus, Open, ReqType, Rpc, Session,
    SessionOptions, Tag, Tasks,
};
use futures::future::try_join_all;

use super::Peer;
use crate::load::Load;
use crate::work;

const ECHO: ReqType = ReqType(1);

/// A window for calls in flight and credits for packets; the defaults are 8 and 32.
const SESSION: SessionOptions = SessionOptions {
    window: 64,
    credits: 64,
    ..SessionOptions::DEFAULT
};

/// The poll API.
pub(crate) struct Polled<T>(PhantomData<T>);

/// Futures.
pub(crate) struct Futures<T>(PhantomData<T>);

impl<T> Default for Polled<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Futures<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Open> Peer for Polled<T> {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let nexus = Nexus::bind("127.0.0.1:0")?;
        let mut rpc: Rpc<T, ()> = nexus.endpoint(())?;
        rpc.on(ECHO, |(), request, cx| {
            let data = request.data();
            request.reply(cx, data.len(), |out| work::answer(data, out));
        });
        ready(&nexus.address().to_string())?;
        rpc.run_until(|_| false);
        Ok(())
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let nexus = Nexus::bind("127.0.0.1:0")?;
        let mut rpc: Rpc<T, Option<Client<'_>>> = nexus.endpoint(None)?;
        rpc.on_completion(|client, done, cx| {
            if let Some(client) = client {
                client.on_done(done, cx);
            }
        });
        let session = rpc.connect_with(address.parse::<SocketAddr>()?, &options())?;
        rpc.wait_connected(session)?;
        let (inflight, size) = (load.inflight(), load.size());
        let mut bufs = Vec::new();
        for _ in 0..inflight {
            bufs.push([rpc.buf(size)?, rpc.buf(size)?]);
        }
        let (client, mut cx) = rpc.with();
        let client = client.insert(Client {
            session,
            load,
            wrong: None,
        });
        bufs.into_iter()
            .for_each(|bufs| client.issue(bufs, &mut cx));
        rpc.run_until(|rpc| rpc.app().as_ref().is_none_or(Client::is_over));
        match rpc.app_mut().take().and_then(|client| client.wrong) {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }
}

/// The state of a client of the poll API.
struct Client<'a> {
    session: Session,
    load: &'a mut Load,
    wrong: Option<anyhow::Error>,
}

impl Client<'_> {
    fn is_over(&self) -> bool {
        self.load.report().is_some() || self.wrong.is_some()
    }

    #[inline]
    fn issue(&mut self, [mut request, response]: [MsgBuf; 2], cx: &mut Cx<'_>) {
        let Some(number) = self.load.next(request.data_mut()) else {
            return cx.recycle([request, response]);
        };
        if let Err(refused) = cx.call(self.session, ECHO, request, response, Tag(number)) {
            self.wrong = Some(refused.into());
        }
    }

    /// The continuation, which checks the answer and issues the next request.
    #[inline]
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let checked = match done.result {
            Ok(()) => self.load.end(done.tag.0, done.response.data()),
            Err(error) => Err(error.into()),
        };
        if let Err(wrong) = checked {
            self.wrong = Some(wrong);
        }
        self.issue([done.request, done.response], cx);
    }
}

impl<T: Open> Peer for Futures<T> {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let nexus = Nexus::bind("127.0.0.1:0")?;
        let mut local: Local<T> = Local::new(nexus.endpoint(Tasks::default())?);
        local.serve(ECHO, |mut request, cx| async move {
            let body = request.take_buf()?;
            let len = body.data().len();
            let replied = request.reply_with(len, |out| work::answer(body.data(), out));
            cx.recycle([body]);
            replied
        });
        ready(&nexus.address().to_string())?;
        local.block_on(|_| std::future::pending())
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let nexus = Nexus::bind("127.0.0.1:0")?;
        let mut local: Local<T> = Local::new(nexus.endpoint(Tasks::default())?);
        let session = local.connect_with(address.parse::<SocketAddr>()?, &options())?;
        local.block_on(|cx| async move {
            cx.connected(session).await?;
            let inflight = load.inflight();
            let load = RefCell::new(load);
            let calls = (0..inflight).map(|_| one_at_a_time(&cx, session, &load));
            try_join_all(calls).await.map(drop)
        })
    }
}

/// Issues one call after the other.
async fn one_at_a_time(
    cx: &Caller,
    session: Session,
    load: &RefCell<&mut Load>,
) -> anyhow::Result<()> {
    let size = load.borrow().size();
    let [mut request, mut response] = [cx.buf(size)?, cx.buf(size)?];
    loop {
        let number = load.borrow_mut().next(request.data_mut());
        let Some(number) = number else { return Ok(()) };
        let reply = cx.call(session, ECHO, request).response(response).await?;
        load.borrow_mut().end(number, reply.data())?;
        (request, response) = reply.into_bufs();
    }
}

pub(super) fn options() -> ConnectOptions {
    ConnectOptions {
        session: SESSION,
        ..ConnectOptions::default()
    }
}
