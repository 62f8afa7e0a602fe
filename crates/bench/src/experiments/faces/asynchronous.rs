//! Client and server as futures: the client has one for each request in flight, the server one for
//! each request that it handles.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{bail, ensure};
use dunlin::{Caller, Local, MsgBuf, Session, Tasks};

use super::{BLOCK, INFLIGHT, Params, SESSIONS, SIZE, STUCK, measure};
use crate::harness::subject::side::Side;
use crate::harness::subject::{ECHO, Medium, Report, server};
use crate::harness::work;
use harness::process::Parent;

/// State that the futures of a client share.
#[derive(Default)]
struct Client {
    /// The content of the next request.
    counter: Cell<u64>,
    completed: Cell<u64>,
    /// Requests whose response has not come.
    unanswered: Cell<usize>,
    /// The measurement is over: no further request begins.
    is_over: Cell<bool>,
    wrong: RefCell<Option<String>>,
}

/// Serves until the parent kills it.
pub(super) fn serve<T: Medium>(parent: &Parent, params: &Params) -> anyhow::Result<()> {
    let asked = server::listen_to_parent();
    let endpoint = params.setting.open::<T, _>(Tasks::default())?;
    let address = endpoint.nexus().address();
    let mut local = Local::new(endpoint);
    local.serve(ECHO, |request, _| async move {
        let mut answer = [0; SIZE];
        let Some(answer) = answer.get_mut(..request.data().len()) else {
            return Ok(());
        };
        work::answer(request.data(), answer);
        request.reply(answer)
    });
    parent.say(&address)?;
    loop {
        local.turn();
        if asked.load(Ordering::Relaxed) {
            asked.store(false, Ordering::Relaxed);
            parent.say(&local.inspect(Side::read)?)?;
        }
    }
}

/// Calls for the span that the parent gives, and reports.
pub(super) fn call<T: Medium>(
    parent: &Parent,
    params: &Params,
    server: SocketAddr,
) -> anyhow::Result<()> {
    let mut local = Local::new(params.setting.open::<T, _>(Tasks::default())?);
    let sessions: Vec<Session> = (0..SESSIONS)
        .map(|_| local.connect(server))
        .collect::<Result<_, _>>()?;
    for &session in &sessions {
        local.block_on(|cx| async move { cx.connected(session).await })?;
    }
    let client = Rc::new(Client::default());
    let cx = local.caller();
    for &session in sessions.iter().cycle().take(INFLIGHT) {
        let bufs = [cx.buf(SIZE)?, cx.buf(SIZE)?];
        cx.spawn(one_at_a_time(cx.clone(), session, bufs, Rc::clone(&client)));
    }
    let values = measure(params.span, || {
        for _ in 0..BLOCK {
            local.turn();
        }
        match client.wrong.take() {
            Some(wrong) => bail!(wrong),
            None => Ok(client.completed.get()),
        }
    })?;
    // A `Local` that is dropped cancels its calls. If the server has already answered such a
    // call, it sends the response again, and would count a retransmission. So the client waits
    // for all responses first.
    client.is_over.set(true);
    let begin = Instant::now();
    while client.unanswered.get() > 0 && client.wrong.borrow().is_none() {
        local.turn();
        ensure!(
            begin.elapsed() < STUCK,
            "the last requests were not answered"
        );
    }
    if let Some(wrong) = client.wrong.take() {
        bail!(wrong);
    }
    let side = local.inspect(Side::read)?;
    parent.say(&Report { values, side })
}

/// Issues one request after another; ends at the first that fails.
async fn one_at_a_time(
    cx: Caller,
    session: Session,
    [mut request, mut response]: [MsgBuf; 2],
    client: Rc<Client>,
) {
    while !client.is_over.get() {
        let counter = client.counter.get();
        client.counter.set(counter.wrapping_add(1));
        work::fill(request.data_mut(), counter);
        client.unanswered.set(client.unanswered.get() + 1);
        let reply = match cx.call(session, ECHO, request).response(response).await {
            Ok(reply) => reply,
            Err(failed) => {
                client.wrong.replace(Some(failed.to_string()));
                return;
            }
        };
        if reply.data().len() != SIZE || !work::is_answer(reply.data(), SIZE, counter) {
            let wrong = format!("the answer to request {counter} is wrong");
            client.wrong.replace(Some(wrong));
            return;
        }
        client.completed.set(client.completed.get() + 1);
        client.unanswered.set(client.unanswered.get() - 1);
        (request, response) = reply.into_bufs();
    }
}
