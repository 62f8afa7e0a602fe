//! Client and server on the poll API, with and without types: the code differs only in how it
//! writes and reads requests.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use anyhow::bail;
use dunlin::service::{Context, Fixed};
use dunlin::{CallOptions, Cx, Done, MsgBuf, Rpc, Session, Tag, service};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BLOCK, INFLIGHT, Params, SESSIONS, SIZE, measure};
use crate::harness::subject::side::Side;
use crate::harness::subject::{ECHO, Medium, Report, server};
use crate::harness::{subject, work};
use harness::process::Parent;

/// A request or a response.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Words([U64; SIZE / 8]);

/// The work of the experiment as a service.
#[service(codec = Fixed)]
trait Echo {
    /// Answers with a function of all words.
    #[method(0x100)]
    fn answer(words: Words) -> Words;
}

struct Server;

impl EchoPoll for Server {
    #[inline]
    fn answer(&mut self, words: &Words, _: &mut Cx<'_>, _: Context<'_>) -> Words {
        let mut answer = Words::new_zeroed();
        work::answer(words.as_bytes(), answer.as_mut_bytes());
        answer
    }
}

/// The state of a client.
struct Client<const TYPED: bool> {
    sessions: Vec<Session>,
    /// The session of the next request.
    next: usize,
    /// The content of the request.
    counter: u64,
    completed: u64,
    wrong: Option<String>,
}

/// Serves until the parent kills it.
pub(super) fn serve<T: Medium>(
    parent: &Parent,
    params: &Params,
    typed: bool,
) -> anyhow::Result<()> {
    let asked = server::listen_to_parent();
    let mut rpc: Rpc<T, Server> = params.setting.open(Server)?;
    match typed {
        true => EchoPoll::register(&mut rpc),
        false => server::on_echo(&mut rpc),
    }
    parent.say(&rpc.nexus().address())?;
    loop {
        rpc.run_once();
        if asked.load(Ordering::Relaxed) {
            asked.store(false, Ordering::Relaxed);
            parent.say(&Side::read(&mut rpc)?)?;
        }
    }
}

/// Calls for the span that the parent gives, and reports.
pub(super) fn call<T: Medium, const TYPED: bool>(
    parent: &Parent,
    params: &Params,
    server: SocketAddr,
) -> anyhow::Result<()> {
    let mut rpc: Rpc<T, Client<TYPED>> = params.setting.open(Client {
        sessions: Vec::new(),
        next: 0,
        counter: 0,
        completed: 0,
        wrong: None,
    })?;
    rpc.on_completion(Client::on_done);
    let sessions = subject::connect(&mut rpc, server, SESSIONS)?;
    rpc.app_mut().sessions = sessions;
    for _ in 0..INFLIGHT {
        let bufs = [rpc.buf(SIZE)?, rpc.buf(SIZE)?];
        let (client, mut cx) = rpc.with();
        client.issue(bufs, &mut cx);
    }
    let values = measure(params.span, || {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
        let client = rpc.app_mut();
        match client.wrong.take() {
            Some(wrong) => bail!(wrong),
            None => Ok(client.completed),
        }
    })?;
    let side = Side::read(&mut rpc)?;
    parent.say(&Report { values, side })
}

impl<const TYPED: bool> Client<TYPED> {
    #[inline]
    fn issue(&mut self, bufs: [MsgBuf; 2], cx: &mut Cx<'_>) {
        let counter = self.counter;
        self.counter = counter.wrapping_add(1);
        self.next = if self.next + 1 == SESSIONS {
            0
        } else {
            self.next + 1
        };
        let (session, tag) = (self.sessions[self.next], Tag(counter));
        let refused = if TYPED {
            let mut words = Words::new_zeroed();
            work::fill(words.as_mut_bytes(), counter);
            let options = CallOptions::default();
            let called = EchoStub(session).answer_with(cx, &words, bufs, tag, options);
            called.err().map(|refused| refused.to_string())
        } else {
            let [mut request, response] = bufs;
            work::fill(request.data_mut(), counter);
            let called = cx.call(session, ECHO, request, response, tag);
            called.err().map(|refused| refused.to_string())
        };
        if refused.is_some() {
            self.wrong = refused;
        }
    }

    /// The continuation: checks the answer, and issues the next request.
    #[inline]
    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let is_right = if TYPED {
            EchoStub::answer_response(&done)
                .is_ok_and(|words| work::is_answer(words.as_bytes(), SIZE, done.tag.0))
        } else {
            let answer = done.response.data();
            done.result.is_ok() && answer.len() == SIZE && work::is_answer(answer, SIZE, done.tag.0)
        };
        if !is_right {
            self.wrong = Some(format!("request {}: {:?}", done.tag.0, done.result));
        }
        self.completed += 1;
        self.issue([done.request, done.response], cx);
    }
}
