//! A session that was used and is idle takes at most 512 bytes at each side
//! (`docs/decisions/idle-sessions.md`): here 365, because control plane and shared memory, which
//! take the rest, are not here.
//!
//! The test counts the resident pages of its process before and after each step of either endpoint,
//! and adds the difference to that side: most of the memory is mapped, not allocated. It is alone
//! in its process, because other tests would change the pages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use dunlin_core::{
    Config, Cx, Done, Endpoint, EndpointNum, Nanos, Request, Session, SessionOptions, Tag,
};
use dunlin_testkit::allocations::Memory;
use dunlin_testkit::clock::StepClock;
use dunlin_wire::ReqType;

const SESSIONS: usize = 20_000;
const ECHO: ReqType = ReqType(1);
const SIZE: usize = 32;
/// Sessions that are opened, or used, between two counts.
const GROUP: usize = 50;
/// Calls of each session: more than its window, so that every slot is used.
const CALLS: usize = 10;
/// The most bytes of a session: a word more for each of its slots is too much.
const MOST: i64 = 400;

type Idle = Endpoint<Memory, StepClock, ()>;

/// Both endpoints, and the resident bytes that each of them has added.
struct Pair {
    clock: StepClock,
    ends: [Idle; 2],
    added: [i64; 2],
}

fn resident() -> i64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = statm.split(' ').nth(1).unwrap();
    pages.parse::<i64>().unwrap() * 4096
}

impl Pair {
    fn new() -> Self {
        let clock = StepClock::at(Nanos::from_millis(1));
        let config = Config {
            max_sessions: SESSIONS,
            hugepages: false,
            ..Config::default()
        };
        let mut number = 0;
        let ends = Memory::pair().map(|halves| {
            number += 1;
            let (clock, config, own) = (clock.clone(), config.clone(), EndpointNum::chosen(number));
            let mut rpc = Idle::new((), clock, halves, config, 1, None, own).unwrap();
            rpc.on(ECHO, |(), req: Request<'_>, cx: &mut Cx<'_>| {
                let data = req.data();
                req.reply_bytes(cx, data);
            });
            rpc.on_completion(|(), done: Done, cx| {
                done.result.unwrap();
                cx.recycle([done.request, done.response]);
            });
            rpc
        });
        Self {
            clock,
            ends,
            added: [0; 2],
        }
    }

    /// Lets one side act, and counts what that adds.
    fn act<R>(&mut self, side: usize, step: impl FnOnce(&mut Idle) -> R) -> R {
        let before = resident();
        let result = step(&mut self.ends[side]);
        self.added[side] += resident() - before;
        result
    }

    /// Opens some sessions.
    fn open(&mut self) -> Vec<Session> {
        let options = SessionOptions::DEFAULT;
        let opened = self.act(0, |rpc| {
            let mut sessions = rpc.lifecycle();
            [(); GROUP].map(|()| {
                let session = sessions.open(&options).unwrap();
                (session, sessions.offer_of(session).unwrap())
            })
        });
        let accepted = self.act(1, |rpc| {
            let mut sessions = rpc.lifecycle();
            opened
                .map(|(session, offer)| (session, sessions.accept(Memory::PEER, &offer).unwrap().1))
        });
        self.act(0, |rpc| {
            let mut sessions = rpc.lifecycle();
            let known = accepted.map(|(session, answer)| {
                sessions.opened(session, Memory::PEER, &answer).unwrap();
                session
            });
            known.to_vec()
        })
    }

    /// One call of each of these sessions.
    fn call(&mut self, sessions: &[Session]) {
        self.act(0, |rpc| {
            for session in sessions {
                let [request, response] = [(); 2].map(|()| rpc.buf(SIZE).unwrap());
                let called = rpc.call(*session, ECHO, request, response, Tag(0));
                called.unwrap();
            }
        });
        while self.ends[0].call_count() != 0 {
            for side in [0, 1] {
                self.act(side, Idle::run_once);
            }
            self.clock.pass(Nanos::from_micros(1));
        }
    }

    /// Lets time pass in which nothing is called.
    fn rest(&mut self) {
        for _ in 0..5_000 {
            self.clock.pass(Nanos::from_micros(400));
            for side in [0, 1] {
                self.act(side, Idle::run_once);
            }
        }
    }
}

#[test]
fn an_idle_session_takes_few_bytes_at_each_side() {
    let mut pair = Pair::new();
    // What all sessions share is there before the count begins.
    let few = pair.open();
    pair.call(&few);
    pair.added = [0; 2];
    let mut sessions: Vec<Vec<Session>> = Vec::with_capacity(SESSIONS / GROUP);
    for _ in 1..SESSIONS / GROUP {
        sessions.push(pair.open());
    }
    for _ in 0..CALLS {
        for group in &sessions {
            pair.call(group);
        }
    }
    pair.rest();
    let count = i64::try_from(SESSIONS - GROUP).unwrap();
    let bytes = pair.added.map(|added| added / count);
    println!("{bytes:?} bytes of a session at client and server");
    for each in bytes {
        // Fewer would mean that the pages of one side were counted at the other.
        assert!((250..=MOST).contains(&each), "{bytes:?}");
    }
}
