//! The client's calls without an endpoint, with a session, a pacer and a context: single cases, and
//! a long random history that is compared with a model.

use dunlin_wire::{Flags, Header, PacketType, Ran, ReqNum, SessionNum, Token};
use proptest::prelude::*;

use super::answers::Answer;
use super::issue::{Started, Wish};
use super::*;
use crate::call::{CallOptions, Done};
use crate::congestion::pacer::Pacer;
use crate::context::Context;
use crate::error::RpcError;
use crate::handle::{CallIdx, Session};
use crate::session::line::Line;
use crate::session::table::Sessions;
use crate::session::terms::Terms;
use crate::tests::{TERMS, context, open_session};

const WINDOW: u32 = 4;

/// A client side with one open session.
struct Client {
    calls: Calls,
    sessions: Sessions,
    pacer: Pacer,
    context: Context,
    session: Session,
}

impl Client {
    fn new(credits: u32) -> Self {
        let terms = Terms {
            window: WINDOW,
            credits,
            ..TERMS
        };
        let (sessions, session) = open_session(&terms);
        let (mut calls, slots) = (Calls::default(), sessions.at(session.index()).slots());
        calls.open_slots(slots, terms.first_req, sessions.slot_count(), 1);
        let context = context(terms.data_size);
        let pacer = Pacer::new(&context.config);
        Self {
            calls,
            sessions,
            pacer,
            context,
            session,
        }
    }

    fn line(&mut self) -> &mut Line {
        self.sessions.at_mut(self.session.index())
    }

    /// Issues a call of `len` bytes, and starts it if it need not wait.
    fn issue(&mut self, tag: u64, len: usize) -> (CallId, Option<Started>) {
        let buf = |context: &mut Context, len| context.pool.alloc(len).expect("memory");
        let wish = Wish {
            session: self.session,
            req_type: ReqType(1),
            request: buf(&mut self.context, len),
            response: buf(&mut self.context, 8),
            tag: Tag(tag),
            options: CallOptions::default(),
        };
        let issued = self
            .calls
            .issue(wish, &mut self.sessions, &mut self.context)
            .expect("the session is open");
        let started = issued.starts.then(|| self.start(issued.id.index()));
        (issued.id, started)
    }

    fn start(&mut self, idx: CallIdx) -> Started {
        let line = self.sessions.at_mut(self.session.index());
        self.calls
            .start(idx, line, &mut self.pacer, &mut self.context)
    }

    /// Starts the waiting calls that may start.
    fn drain(&mut self) {
        while self.line().can_send()
            && let Some(idx) = self.calls.first_waiting(self.session.index())
        {
            let line = self.sessions.at_mut(self.session.index());
            self.calls.unlink(idx, line);
            self.start(idx);
        }
    }

    fn answer(&mut self, kind: PacketType, req: ReqNum) -> Answer {
        let header = header(kind, req);
        let line = self.sessions.at_mut(self.session.index());
        self.calls
            .on_answer(&header, &[7; 4], line, &mut self.pacer, &mut self.context)
    }

    /// The completion of the call whose response arrives.
    fn complete(&mut self, req: ReqNum) -> Option<Done> {
        let answer = self.answer(PacketType::Resp, req);
        match answer {
            Answer::Ends(answered) => {
                let header = header(PacketType::Resp, req);
                Some(self.calls.finish(answered, &header, &[7; 4], |_| true))
            }
            _ => None,
        }
    }

    fn abort(&mut self, idx: CallIdx) -> Option<Done> {
        let line = self.sessions.at_mut(self.session.index());
        self.calls.abort(
            idx,
            RpcError::Cancelled(Ran::Unknown),
            line,
            &mut self.context,
        );
        self.context.held.pop_ending()
    }

    /// Issues a call on the common path; returns its entry, and the last word of the header of its
    /// answer.
    fn issue_plainly(&mut self) -> (CallIdx, u64) {
        self.line().ask_for_sample(Nanos::ZERO, Nanos::from_secs(1));
        // The table has a free entry.
        let free = self.calls.table.take();
        self.calls.table.release(free);
        let bufs = [(); 2].map(|()| self.context.pool.alloc(8).expect("memory"));
        let given = (ReqType(1), Tag(1), CallOptions::default());
        let (session, sessions) = (self.session, &mut self.sessions);
        let id = self
            .calls
            .issue_apart(session, bufs, given, sessions, &mut self.context)
            .expect("the call is ordinary");
        let req = self.calls.req_of(id.index());
        (id.index(), u64::from(req.0) << 32)
    }

    /// Whether a response of `len` bytes whose header has this last word ends a call.
    fn ends(&mut self, word: u64, len: usize) -> bool {
        let (index, token) = (self.session.index(), self.line().offer(SessionNum(0)).token);
        let words = [
            u64::from(index.0) << 32,
            (len as u64) << 32 | u64::from(token.0),
            word,
        ];
        let data = vec![7; len];
        self.calls
            .end_plain::<false>(&words, &data, &mut self.sessions, &mut self.context)
            .is_some()
    }

    fn check(&self) {
        let line = self.sessions.at(self.session.index());
        line.check();
        assert!(
            self.calls
                .are_slots_settled(line.slots(), self.session.index())
        );
        let taken = self.calls.in_slots(line.slots()).count();
        assert_eq!(
            taken,
            line.in_flight() as usize,
            "each free bit is a free slot"
        );
        let held = line.terms().credits - line.credits();
        assert_eq!(held, line.in_flight(), "each call in a slot has a credit");
    }
}

#[test]
fn a_slot_keeps_the_entry_of_its_ordinary_calls() {
    let mut client = Client::new(8);
    let mut entries = Vec::new();
    for _ in 0..3 {
        let (entry, word) = client.issue_plainly();
        assert_eq!(client.calls.live(), 1);
        assert!(client.ends(word, 4));
        client.check();
        assert_eq!(client.calls.live(), 0);
        entries.push(entry);
    }
    assert_eq!(entries, [entries[0]; 3]);
    // The general path does the same.
    let (id, _) = client.issue(2, 8);
    assert_eq!(id.index(), entries[0]);
    client.check();
    let req = client.calls.req_of(id.index());
    assert!(client.complete(req).is_some());
    client.check();
    assert_eq!(client.issue_plainly().0, entries[0]);
    assert_eq!(client.calls.live(), 1);
}

#[test]
fn the_slots_of_a_session_that_ends_give_their_entries_back() {
    let mut client = Client::new(8);
    let (_, word) = client.issue_plainly();
    assert!(client.ends(word, 4));
    let (kept, slots) = (client.issue_plainly().0, client.line().slots());
    let (loose, _) = client.issue(2, 8);
    let line = client.sessions.at(client.session.index());
    for idx in [kept, loose.index()] {
        let error = RpcError::PeerFailed(Ran::Unknown);
        let context = &mut client.context;
        client.calls.end_with_session(idx, error, line, context);
    }
    client.calls.close_slots(slots);
    assert_eq!((client.calls.live(), client.calls.table.live()), (0, 0));
}

#[test]
fn acknowledgements_wait_for_four_responses_and_a_millisecond() {
    let mut client = Client::new(8);
    let count = |client: &Client| {
        let line = client.sessions.at(client.session.index());
        client.calls.to_acknowledge(line).count()
    };
    let words: Vec<u64> = (0..4).map(|_| client.issue_plainly().1).collect();
    for (before, word) in words.iter().enumerate() {
        assert_eq!(count(&client), before);
        assert!(client.ends(*word, 4));
    }
    assert_eq!(count(&client), 4);
    let (index, now) = (client.session.index(), Nanos::from_millis(5));
    let line = client.sessions.at_mut(index);
    assert!(line.may_send_acks(now));
    let acks = client.calls.take_acks(line, now);
    assert_eq!(acks.0.map(|req| u64::from(req.0) << 32), words[..]);
    assert!(!line.may_send_acks(Nanos(5_999_999)));
    assert!(line.may_send_acks(Nanos::from_millis(6)));
    assert_eq!(count(&client), 0, "each response is acknowledged once");
    let (_, word) = client.issue_plainly();
    assert!(client.ends(word, 4));
    assert_eq!(count(&client), 1);
}

fn header(kind: PacketType, req: ReqNum) -> Header {
    Header {
        kind,
        flags: Flags::NONE,
        aux: dunlin_wire::Residence::NO_SAMPLE.0,
        session: SessionNum(0),
        token: Token(0),
        size: 4,
        pkt: dunlin_wire::PktNum(0),
        req,
    }
}

#[test]
fn an_answer_ends_its_call_and_moves_its_slot_to_the_next_number() {
    let mut client = Client::new(8);
    let (id, started) = client.issue(5, 4);
    assert_eq!(started, Some(Started::Whole));
    let req = client.calls.req_of(id.index());
    assert_eq!(req, ReqNum(64));
    let done = client.complete(req).expect("the answer ends the call");
    assert_eq!((done.tag, done.result), (Tag(5), Ok(())));
    assert_eq!(done.response.data(), &[7; 4]);
    assert_eq!(client.calls.find(id), None);
    let next = client.sessions.at(SessionIdx(0)).slot_at(req);
    assert_eq!(client.calls.req_at(next), ReqNum(64 + WINDOW));
    assert!(matches!(
        client.answer(PacketType::Resp, req),
        Answer::Taken
    ));
    client.check();
}

#[test]
fn a_request_of_several_packets_is_left_to_its_transfer() {
    let mut client = Client::new(8);
    let (id, started) = client.issue(5, 3000);
    assert_eq!(started, Some(Started::InParts(3000)));
    let idx = id.index();
    client.calls.begin_sending(idx, TransferIdx(3));
    client.check();
    let req = client.calls.req_of(idx);
    let amid = client.answer(PacketType::Resp, req);
    assert!(matches!(amid, Answer::Amid(it) if it == idx), "{amid:?}");
    assert_eq!(client.calls.end_transfer(idx), Some(TransferIdx(3)));
    client.check();
    assert!(client.complete(req).is_some());
    client.check();
}

#[test]
fn a_cancelled_call_keeps_slot_and_credit_until_the_server_has_answered() {
    let mut client = Client::new(8);
    let (id, _) = client.issue(5, 4);
    let (idx, req) = (id.index(), client.calls.req_of(id.index()));
    let done = client.abort(idx).expect("its completion");
    assert_eq!(done.result, Err(RpcError::Cancelled(Ran::Unknown)));
    assert_eq!(client.calls.find(id), None);
    assert_eq!(client.line().in_flight(), 1);
    client.check();
    assert!(client.complete(req).is_none());
    assert_eq!(client.line().in_flight(), 0);
    assert_eq!(client.calls.live(), 0);
    client.check();
}

#[test]
fn only_the_awaited_response_is_plain() {
    let mut client = Client::new(8);
    let (id, _) = client.issue(5, 4);
    let (idx, req) = (id.index(), client.calls.req_of(id.index()));
    let word = u64::from(req.0) << 32;
    assert!(!client.ends(word, 9000), "the response does not fit");
    assert!(
        !client.ends(word | 1, 8),
        "this is a later packet of the response"
    );
    assert!(
        !client.ends(word + (1 << 32), 8),
        "the response belongs to another slot"
    );
    let later = word + (u64::from(WINDOW) << 32);
    assert!(
        !client.ends(later, 8),
        "the response belongs to a later request of the slot"
    );
    client.calls.begin_receiving(idx, TransferIdx(1));
    assert!(!client.ends(word, 8), "the response has several packets");
    client.calls.end_transfer(idx);
    assert!(client.ends(word, 8));
    assert!(!client.ends(word, 8), "the call has ended");
    assert_eq!(client.calls.live(), 0);
    client.check();
}

#[test]
#[should_panic(expected = "cannot be")]
fn a_free_call_cannot_be_accepted() {
    let mut client = Client::new(8);
    let (id, _) = client.issue(5, 4);
    let (idx, req) = (id.index(), client.calls.req_of(id.index()));
    client.complete(req);
    client.calls.accept(idx, Nanos(1));
}

#[derive(Clone, Debug)]
enum Step {
    Issue,
    Answer(usize),
    Cancel(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Issue),
        2 => (0..16_usize).prop_map(Step::Answer),
        1 => (0..16_usize).prop_map(Step::Cancel),
    ]
}

proptest! {
    /// The model: each call is pending or over, calls start in order, and each completes once.
    #[test]
    fn every_call_completes_once(
        steps in prop::collection::vec(step(), 1..80),
        credits in 1..6_u32,
    ) {
        let mut client = Client::new(credits);
        let mut pending: Vec<(u64, CallId)> = Vec::new();
        for (tag, step) in (0..).zip(steps) {
            match step {
                Step::Issue => pending.push((tag, client.issue(tag, 4).0)),
                Step::Answer(nth) => {
                    let slots = client.line().slots();
                    let calls: Vec<_> = client.calls.in_slots(slots).collect();
                    if let Some(idx) = calls.get(nth % calls.len().max(1)) {
                        let req = client.calls.req_of(*idx);
                        if let Some(done) = client.complete(req) {
                            let place = pending.iter().position(|(tag, _)| *tag == done.tag.0);
                            pending.remove(place.expect("the call was pending"));
                        }
                    }
                }
                Step::Cancel(nth) if !pending.is_empty() => {
                    let (tag, id) = pending.remove(nth % pending.len());
                    let idx = client.calls.find(id).expect("the call is pending");
                    prop_assert_eq!(client.abort(idx).map(|done| done.tag), Some(Tag(tag)));
                }
                Step::Cancel(_) => {}
            }
            client.drain();
            client.check();
            for (_, id) in &pending {
                prop_assert!(client.calls.find(*id).is_some());
            }
            let waiting = client.calls.waiting(client.session.index());
            prop_assert!(waiting == 0 || !client.line().can_send());
        }
    }
}
