//! The server's requests without an endpoint, with a session and a context: single requests, and a
//! long random history that is compared with a model.

mod turns;

use std::collections::BTreeSet;

use dunlin_wire::{Flags, Header, PacketType, PktNum, SessionNum, Token};
use proptest::prelude::*;

use super::*;
use crate::context::Context;
use crate::server::inbound::{Large, Received};
use crate::session::table::Sessions;
use crate::session::terms::Terms;
use crate::tests::{TERMS, context, open_session};
use crate::transfer::reassembly::Taken;

const WINDOW: u32 = 4;
const FIRST: u32 = 64;

/// A server side with one open session.
struct Server {
    requests: Requests,
    sessions: Sessions,
    context: Context,
    session: SessionIdx,
    /// The position up to which the transport has sent.
    sent: TxSeq,
}

impl Server {
    fn new() -> Self {
        Self::with(TERMS)
    }

    /// A server side with the packet size and the credits of these terms.
    fn with(terms: Terms) -> Self {
        let terms = Terms {
            window: WINDOW,
            first_req: ReqNum(FIRST),
            ..terms
        };
        let (sessions, session) = open_session(&terms);
        let session = session.index();
        let mut requests = Requests::default();
        let slots = sessions.at(session).slots();
        requests.open_slots(slots, terms.first_req, sessions.slot_count());
        let mut context = context(terms.data_size);
        context.moment.begin_iteration(Nanos(10));
        Self {
            requests,
            sessions,
            context,
            session,
            sent: TxSeq(0),
        }
    }

    /// Passes a packet to one of the part's event functions.
    fn on<T>(
        &mut self,
        header: &Header,
        event: fn(&mut Requests, &Received<'_>, &Sessions, &mut Context) -> T,
    ) -> T {
        let line = self.sessions.at(self.session);
        let packet = Received::new(self.session, line, header, false);
        event(
            &mut self.requests,
            &packet,
            &self.sessions,
            &mut self.context,
        )
    }

    fn request(&mut self, req: u32) -> Result<RequestIdx, Effect> {
        let header = header(PacketType::Req, req, 8);
        self.on(&header, |requests, packet, sessions, context| {
            requests.on_request(packet, sessions, context)
        })
    }

    fn accepted(&mut self, req: u32) -> RequestIdx {
        self.request(req).expect("a new request")
    }

    /// Begins a request of three packets, the first of which has arrived.
    fn begin_large(&mut self, req: u32) -> Partial {
        let header = header(PacketType::Req, req, 3000);
        let found = self.on(&header, Requests::on_large_request);
        let Large::New(idx) = found else {
            panic!("{found:?}");
        };
        self.requests
            .begin_parts(idx, AssemblyIdx(7), 3, &mut self.context)
    }

    fn cancel(&mut self, req: u32) -> Effect {
        self.on(&header(PacketType::Cancel, req, 0), Requests::on_cancel)
    }

    fn reply(&mut self, idx: RequestIdx, len: usize) {
        let (requests, context) = (&mut self.requests, &mut self.context);
        if let Err(write) = requests.reply_plain(idx, len, |out: &mut [u8]| out.fill(7), context) {
            requests.reply_otherwise(idx, len, write, &self.sessions, context);
        }
    }

    fn reject(&mut self, idx: RequestIdx, code: ErrorCode) {
        self.requests
            .reject(idx, code, &self.sessions, &mut self.context);
    }

    fn close_session(&mut self) -> Vec<Effect> {
        let slots = self.sessions.at(self.session).slots();
        let closed = |at| {
            let context = &mut self.context;
            self.requests.on_session_closed(at, context)
        };
        slots.iter().map(closed).collect()
    }

    fn pass(&mut self, time: Nanos) {
        let now = self.context.moment.now() + time;
        self.context.moment.begin_iteration(now);
    }

    /// Lets the hold of every response expire, and sweeps all requests.
    fn sweep(&mut self) -> Vec<Effect> {
        self.pass(self.context.config.response_hold);
        let all = 0..u32::try_from(self.requests.table.len()).unwrap();
        let swept = |index| {
            let (sessions, context) = (&self.sessions, &mut self.context);
            self.requests.sweep(RequestIdx(index), sessions, context)
        };
        all.map(swept).collect()
    }

    /// Returns the packets that were sent since the last call. They count as read by the transport.
    fn sent(&mut self) -> Vec<Header> {
        let items = self.context.outbox.items().iter();
        let headers: Vec<Header> = items
            .map(|item| Header::decode(&item.inline).expect("a header"))
            .collect();
        self.sent.0 += headers.len() as u64;
        self.context.outbox.clear(self.sent);
        self.context.held.on_done(self.sent);
        headers
    }
}

fn header(kind: PacketType, req: u32, size: u32) -> Header {
    Header {
        kind,
        flags: Flags::NONE,
        aux: 0,
        session: SessionNum(0),
        token: Token(0),
        size,
        pkt: PktNum(0),
        req: ReqNum(req),
    }
}

#[test]
fn a_request_is_accepted_once_and_its_answer_repeated() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    server.reply(idx, 5);
    assert_eq!(server.request(FIRST), Err(Effect::None));
    let sent = server.sent();
    assert_eq!(sent.len(), 2);
    for (header, flags) in sent.iter().zip([Flags::NONE, Flags::RETRANSMISSION]) {
        assert_eq!((header.kind, header.size), (PacketType::Resp, 5));
        assert_eq!((header.req, header.flags), (ReqNum(FIRST), flags));
    }
    assert_eq!(server.context.stats.counters().requests_received, 1);
}

#[test]
fn only_the_next_number_of_a_slot_starts_a_request() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    server.reply(idx, 5);
    assert_eq!(server.request(FIRST + 2 * WINDOW), Err(Effect::None));
    assert_eq!(server.request(FIRST - WINDOW), Err(Effect::None));
    let drops = server.context.stats.counters().drops;
    assert_eq!((drops.future, drops.stale), (1, 1));
    assert_eq!(server.accepted(FIRST + WINDOW), idx, "the slot's own entry");
}

#[test]
fn a_slot_takes_no_request_before_its_last_one_is_answered() {
    let mut server = Server::new();
    server.accepted(FIRST);
    assert_eq!(server.request(FIRST + WINDOW), Err(Effect::None));
    assert_eq!(server.context.stats.counters().drops.busy, 1);
    assert!(server.sent().is_empty());
}

#[test]
fn a_request_that_has_its_answer_keeps_it() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    server.reply(idx, 5);
    server.reply(idx, 6);
    server.reject(idx, ErrorCode::OVERLOADED);
    let spare = server.context.pool.alloc(9).expect("memory");
    let context = &mut server.context;
    server
        .requests
        .reply_with(idx, spare, &server.sessions, context);
    assert_eq!(server.sent().len(), 1, "only the first answer leaves");
    assert_eq!(server.request(FIRST), Err(Effect::None));
    let again = server.sent();
    assert_eq!((again[0].kind, again[0].size), (PacketType::Resp, 5));
}

#[test]
fn a_kept_request_is_acknowledged_when_it_is_due_and_answered_later() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    let id = server.requests.detach(idx, &mut server.context);
    assert_eq!(server.requests.find(id), Some(idx));
    server.pass(server.context.config.ack_delay);
    let context = &mut server.context;
    server.requests.acknowledge_due(&server.sessions, context);
    server.reply(idx, 5);
    let kinds: Vec<PacketType> = server.sent().iter().map(|header| header.kind).collect();
    assert_eq!(kinds, [PacketType::Cr, PacketType::Resp]);
    assert_eq!(server.requests.find(id), None, "the request is answered");
}

#[test]
fn an_unanswered_request_fails_after_its_handler() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    let context = &mut server.context;
    server
        .requests
        .after_handler(idx, &server.sessions, context);
    let sent = server.sent();
    assert_eq!(sent[0].size, ErrorCode::HANDLER_FAILED.0);
    assert_eq!(server.context.stats.counters().unanswered, 1);
}

#[test]
fn a_cancelled_number_never_runs() {
    let mut server = Server::new();
    assert_eq!(server.cancel(FIRST), Effect::None);
    assert_eq!(server.sent()[0].size, ErrorCode::CANCELLED.0);
    assert_eq!(
        server.request(FIRST),
        Err(Effect::None),
        "the request comes after its CANCEL"
    );
    assert_eq!(server.sent()[0].size, ErrorCode::CANCELLED.0);
}

#[test]
fn the_user_learns_once_that_a_kept_request_was_cancelled() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    server.requests.detach(idx, &mut server.context);
    assert_eq!(server.cancel(FIRST), Effect::None);
    assert_eq!(server.cancel(FIRST), Effect::None);
    assert!(server.context.notices.pop_given_up().is_some());
    assert!(server.context.notices.pop_given_up().is_none());
    assert!(server.requests.is_unwanted(idx));
    server.sent();
    server.reply(idx, 5);
    assert_eq!(server.sent()[0].size, ErrorCode::CANCELLED.0);
}

#[test]
fn packets_of_a_large_request_go_to_its_assembly_until_the_last_one_has_come() {
    let mut server = Server::new();
    let partial = server.begin_large(FIRST);
    assert_eq!(
        (partial.place, partial.session),
        (AssemblyIdx(7), server.session)
    );
    let header = header(PacketType::Req, FIRST, 3000);
    let found = server.on(&header, Requests::on_large_request);
    assert_eq!(found, Large::Part(partial));
    let idx = partial.request;
    server
        .requests
        .on_part(idx, Taken::New, false, &server.context);
    assert_eq!(server.requests.partial(idx), Some(partial));
    server
        .requests
        .on_part(idx, Taken::Last, true, &server.context);
    assert_eq!(server.requests.partial(idx), None);
    server.reply(idx, 5);
    let sent = server.sent();
    assert_eq!(sent[0].flags, Flags::ECN_ECHO, "no CR has echoed the mark");
}

#[test]
fn a_probe_of_a_partly_arrived_request_makes_a_cr_due() {
    let mut server = Server::new();
    let partial = server.begin_large(FIRST);
    let effect = server.on(&header(PacketType::Rfr, FIRST, 0), Requests::on_probe);
    assert_eq!(effect, Effect::CreditDue(partial));
}

#[test]
fn a_partly_arrived_request_is_given_up_by_cancel_sweep_and_close() {
    for end in [
        |server: &mut Server| server.cancel(FIRST),
        |server: &mut Server| server.sweep()[0],
        |server: &mut Server| server.close_session()[0],
    ] {
        let mut server = Server::new();
        let partial = server.begin_large(FIRST);
        assert_eq!(end(&mut server), Effect::GivenUp(partial));
        assert_eq!(server.requests.partial(partial.request), None);
    }
}

#[test]
fn a_held_response_is_given_back_and_never_made_again() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    server.reply(idx, 5);
    server.sent();
    server.sweep();
    assert_eq!(server.requests.table.live(), 0);
    assert_eq!(server.request(FIRST), Err(Effect::None));
    assert_eq!(server.sent()[0].size, ErrorCode::RESPONSE_GONE.0);
}

#[test]
fn acknowledged_responses_are_given_back_and_the_others_stay() {
    let mut server = Server::new();
    for req in FIRST..FIRST + WINDOW {
        let idx = server.accepted(req);
        server.reply(idx, 5);
    }
    let acks = dunlin_wire::AckVector([0, 1, WINDOW + 2, WINDOW + 3].map(|n| ReqNum(FIRST + n)));
    let line = server.sessions.at(server.session);
    server.requests.on_acks(line, acks, &mut server.context);
    assert_eq!(
        server.requests.table.live(),
        2,
        "the server holds no response for two of the numbers"
    );
}

#[test]
fn a_running_request_outlives_its_session_and_sends_no_answer() {
    let mut server = Server::new();
    let (kept, done) = (server.accepted(FIRST), server.accepted(FIRST + 1));
    let id = server.requests.detach(kept, &mut server.context);
    server.reply(done, 5);
    server.sent();
    server.close_session();
    assert_eq!(server.requests.table.live(), 1, "the answered one is gone");
    assert!(server.context.notices.pop_given_up().is_some());
    assert_eq!(server.requests.find(id), Some(kept));
    server.reply(kept, 5);
    assert!(server.sent().is_empty());
    assert_eq!(server.requests.find(id), None);
    assert_eq!(server.requests.table.live(), 0);
    // Later answers change nothing.
    server.reply(kept, 5);
    server.reject(kept, ErrorCode::OVERLOADED);
    assert_eq!(server.requests.table.live(), 0);
}

#[test]
fn a_response_that_the_transport_still_reads_is_not_written_again() {
    let mut server = Server::new();
    let idx = server.accepted(FIRST);
    server.reply(idx, 1000);
    let request = server.requests.at(idx);
    let first = request.response.as_ref().map(|buf| buf.data().as_ptr());
    assert!(!server.context.held.is_done(request.tx_end));
    server.accepted(FIRST + WINDOW);
    server.reply(idx, 1000);
    let request = server.requests.at(idx);
    let second = request.response.as_ref().map(|buf| buf.data().as_ptr());
    assert_ne!(first, second);
}

/// An event of a random history.
#[derive(Clone, Copy, Debug)]
enum Event {
    Request(u32),
    Large(u32),
    Cancel(u32),
    Reply(usize),
    Reject(usize),
    Keep(usize),
    Finish(usize),
    Sweep,
}

fn event() -> impl Strategy<Value = Event> {
    let req = || FIRST..FIRST + 6 * WINDOW;
    prop_oneof![
        8 => req().prop_map(Event::Request),
        2 => req().prop_map(Event::Large),
        1 => req().prop_map(Event::Cancel),
        4 => any::<usize>().prop_map(Event::Reply),
        1 => any::<usize>().prop_map(Event::Reject),
        2 => any::<usize>().prop_map(Event::Keep),
        2 => any::<usize>().prop_map(Event::Finish),
        1 => Just(Event::Sweep),
    ]
}

proptest! {
    /// Each number starts at most one request, and the numbers of a slot start in order. A request
    /// is open from its start to its answer. Every entry of the table is in a slot.
    #[test]
    fn a_number_runs_at_most_once(events in prop::collection::vec(event(), 1..200)) {
        let mut server = Server::new();
        let (mut started, mut open) = (BTreeSet::new(), Vec::new());
        for event in events {
            let picked = |at: usize, open: &[RequestIdx]| open.get(at % open.len().max(1)).copied();
            match event {
                Event::Request(req) => {
                    if let Ok(idx) = server.request(req) {
                        prop_assert!(started.insert(req), "{req} runs twice");
                        prop_assert!(!started.contains(&(req + WINDOW)), "{req} runs late");
                        open.push(idx);
                    }
                }
                Event::Large(req) => {
                    let header = header(PacketType::Req, req, 3000);
                    if let Large::New(idx) = server.on(&header, Requests::on_large_request) {
                        prop_assert!(started.insert(req), "{req} runs twice");
                        let context = &mut server.context;
                        let _ = server.requests.begin_parts(idx, AssemblyIdx(0), 3, context);
                        open.push(idx);
                    }
                }
                Event::Cancel(req) => {
                    let at = server.sessions.at(server.session).slot_at(ReqNum(req));
                    let is_new = server.requests.last_at(at).next(WINDOW) == ReqNum(req);
                    let _ = server.cancel(req);
                    if is_new && server.requests.last_at(at) == ReqNum(req) {
                        started.insert(req);
                    }
                }
                Event::Reply(at) => if let Some(idx) = picked(at, &open) {
                    server.reply(idx, 3);
                }
                Event::Reject(at) => if let Some(idx) = picked(at, &open) {
                    server.reject(idx, ErrorCode::OVERLOADED);
                }
                Event::Keep(at) => if let Some(idx) = picked(at, &open) {
                    server.requests.detach(idx, &mut server.context);
                }
                Event::Finish(at) => if let Some(idx) = picked(at, &open)
                    && server.requests.partial(idx).is_some()
                {
                    server.requests.on_part(idx, Taken::Last, false, &server.context);
                }
                Event::Sweep => {
                    // A handler that has not answered by now has kept the request.
                    open.iter().for_each(|it| _ = server.requests.detach(*it, &mut server.context));
                    let _ = server.sweep();
                }
            }
            open.retain(|idx| !server.requests.at(*idx).state.is_over());
            server.sent();
            let slots = server.sessions.at(server.session).slots();
            let requests = slots.iter().filter_map(|at| server.requests.request_at(at));
            prop_assert_eq!(requests.count(), server.requests.table.live());
        }
    }
}

#[test]
fn only_the_first_packet_of_the_next_request_gets_an_entry() {
    let mut server = Server::new();
    let line = server.sessions.at(server.session);
    let token = line.offer(SessionNum(0)).token;
    let mut comes = |req: u32, packet: u32| {
        let words = [
            u64::from(server.session.0) << 32,
            8 << 32 | u64::from(token.0),
            u64::from(req) << 32 | u64::from(packet),
        ];
        let (sessions, context) = (&mut server.sessions, &mut server.context);
        let found = server.requests.on_plain_request(&words, sessions, context);
        (found.is_some(), server.requests.count_in_slots())
    };
    assert_eq!(comes(FIRST, 1), (false, 0), "not the first packet");
    assert_eq!(
        comes(FIRST + WINDOW, 0),
        (false, 0),
        "this is not the slot's next request"
    );
    assert_eq!(comes(FIRST, 0), (true, 1));
}
