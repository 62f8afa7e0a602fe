//! Large messages without an endpoint: only calls, one session, a pacer and a context.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Bitmap, Flags, Header, PacketType, PktNum, ReqType, SessionNum, Token};

use super::*;
use crate::call::{CallOptions, Tag};
use crate::client::calls::issue::{Started, Wish};
use crate::congestion::{CongestionControl, Sample};
use crate::handle::{CallIdx, Session};
use crate::scheme::{BytesPerSec, Scheme};
use crate::session::line::PathTraits;
use crate::session::terms::Terms;
use crate::tests::{TERMS, context, open_session};
use crate::transport::{Path, TxSeq};

const DATA_SIZE: u32 = 1000;
const CREDITS: u32 = 8;

/// A client side with one open session.
struct Client {
    transfers: Transfers,
    calls: Calls,
    sessions: Sessions,
    pacer: Pacer,
    context: Context,
    session: Session,
    /// Packets that have left.
    sent: u64,
}

impl Client {
    fn new() -> Self {
        let terms = Terms {
            data_size: DATA_SIZE,
            max_message: 1 << 20,
            credits: CREDITS,
            ..TERMS
        };
        let (sessions, session) = open_session(&terms);
        let (mut calls, slots) = (Calls::default(), sessions.at(session.index()).slots());
        calls.open_slots(slots, terms.first_req, sessions.slot_count(), 1);
        let context = context(DATA_SIZE);
        Self {
            transfers: Transfers::default(),
            calls,
            sessions,
            pacer: Pacer::new(&context.config),
            context,
            session,
            sent: 0,
        }
    }

    fn buf(&mut self, len: usize) -> MsgBuf {
        self.context.pool.alloc(len).expect("memory")
    }

    fn with<R>(&mut self, run: impl FnOnce(&mut Transfers, &mut Lent<'_>, SessionIdx) -> R) -> R {
        let mut lent = Lent {
            calls: &mut self.calls,
            sessions: &mut self.sessions,
            pacer: &mut self.pacer,
            context: &mut self.context,
        };
        run(&mut self.transfers, &mut lent, self.session.index())
    }

    /// Issues a call with a request of this many packets, and begins to send it.
    fn send(&mut self, packets: u32) -> CallIdx {
        let size = (packets * DATA_SIZE) as usize;
        let wish = Wish {
            session: self.session,
            req_type: ReqType(1),
            request: self.buf(size),
            response: self.buf(8),
            tag: Tag(1),
            options: CallOptions::default(),
        };
        let issued = self
            .calls
            .issue(wish, &mut self.sessions, &mut self.context)
            .expect("the session is open");
        let (idx, line) = (issued.id.index(), self.sessions.at_mut(SessionIdx(0)));
        let started = self
            .calls
            .start(idx, line, &mut self.pacer, &mut self.context);
        let Started::InParts(size) = started else {
            panic!("{started:?}");
        };
        self.with(|transfers, lent, session| {
            transfers.start(lent, session, idx, size);
            transfers.send_large(lent);
        });
        idx
    }

    /// Issues a call that awaits a response of this many packets, and begins to ask for them.
    fn receive(&mut self, packets: u32) -> CallIdx {
        let idx = self.send(packets);
        self.left();
        self.with(|transfers, lent, session| {
            transfers.end(lent, session, idx);
            let transfer = transfers.insert(session, idx, packets);
            lent.calls.begin_receiving(idx, transfer);
            transfers.send_later(lent, transfer);
            transfers.send_large(lent);
        });
        idx
    }

    /// Packets of the call's message that are in flight.
    fn in_flight(&self, idx: CallIdx) -> u32 {
        let transfer = self.calls.transfer_of(idx);
        transfer.map_or(0, |transfer| self.transfers.at(transfer).outstanding())
    }

    /// The number of packets that have left since the last call of this function.
    fn left(&mut self) -> usize {
        let count = self.context.outbox.items().len();
        let end = TxSeq(self.sent + count as u64);
        self.sent = end.0;
        self.context.outbox.clear(end);
        count
    }

    /// Takes a CR: all packets before `cumulative` have arrived.
    fn arrive(&mut self, idx: CallIdx, cumulative: u32) {
        let header = Header {
            kind: PacketType::Cr,
            flags: Flags::NONE,
            aux: dunlin_wire::Residence::NO_SAMPLE.0,
            session: SessionNum(0),
            token: Token(0),
            size: Header::arrivals(PktNum(cumulative), 0),
            pkt: PktNum(cumulative - 1),
            req: self.calls.req_of(idx),
        };
        self.with(|transfers, lent, session| {
            transfers.on_arrivals(lent, session, idx, &header, Bitmap::EMPTY);
            transfers.send_large(lent);
        });
    }

    fn credits(&self) -> u32 {
        self.sessions.at(SessionIdx(0)).credits()
    }
}

#[test]
fn a_message_sends_what_credits_allow_and_leaves_some_to_small_ones() {
    let mut client = Client::new();
    let idx = client.send(20);
    assert_eq!(client.left(), 7, "one credit is left to small messages");
    assert_eq!(client.credits(), 1);
    client.arrive(idx, 3);
    assert_eq!(client.left(), 3);
    for cumulative in [10, 17] {
        client.arrive(idx, cumulative);
        client.left();
    }
    client.arrive(idx, 20);
    assert_eq!(client.left(), 0);
    assert_eq!(client.credits(), CREDITS - 1, "the call keeps one");
    assert_eq!(client.calls.transfer_of(idx), None);
    assert_eq!(client.transfers.live(), 0);
}

#[test]
fn packets_that_have_not_left_cannot_arrive() {
    let mut client = Client::new();
    let idx = client.send(20);
    client.left();
    client.arrive(idx, 8);
    assert_eq!(client.context.stats.counters().drops.packet_number, 1);
    assert_eq!(client.credits(), 1);
}

#[test]
fn a_message_that_ends_gives_its_credits_to_the_next() {
    let mut client = Client::new();
    let first = client.send(20);
    client.left();
    let second = client.send(20);
    assert_eq!(client.left(), 1, "the call holds one credit");
    client.with(|transfers, lent, session| {
        transfers.end(lent, session, first);
        transfers.send_large(lent);
    });
    assert_eq!(
        client.left(),
        5,
        "one credit is left to small messages, and the first call holds one"
    );
    assert_eq!(client.transfers.live(), 1);
    let credits = client.calls.transfer_of(second);
    let held = credits.map(|transfer| client.transfers.held(transfer));
    assert_eq!(held, Some(6));
}

/// Otherwise, the response would have to wait for an arrival of its own, for up to a round trip.
#[test]
fn credits_that_no_request_needs_go_to_a_response_at_once() {
    let mut client = Client::new();
    let sends = client.send(7);
    assert_eq!(client.left(), 7, "the whole request leaves");
    client.receive(20);
    assert_eq!((client.left(), client.credits()), (1, 0), "one RFR leaves");
    client.arrive(sends, 4);
    client.with(|transfers, lent, _| transfers.send_large(lent));
    assert_eq!(
        (client.left(), client.credits()),
        (1, 1),
        "one RFR asks for three packets"
    );
}

/// Otherwise, each arrival would only let another packet of the request leave.
#[test]
fn a_request_and_a_response_share_the_credits_of_a_session() {
    let mut client = Client::new();
    let sends = client.send(40);
    let receives = client.receive(40);
    let both = |client: &Client| [sends, receives].map(|idx| client.in_flight(idx));
    assert_eq!(both(&client), [7, 1], "the request came first");
    client.arrive(sends, 1);
    assert_eq!(
        both(&client),
        [6, 1],
        "one credit is left to small messages"
    );
    for (cumulative, in_flight) in [(3, [4, 3]), (5, [4, 3]), (7, [4, 3]), (11, [4, 3])] {
        client.arrive(sends, cumulative);
        client.with(|transfers, lent, _| transfers.send_large(lent));
        assert_eq!(
            both(&client),
            in_flight,
            "{cumulative} packets have arrived"
        );
    }
}

#[test]
fn a_silent_peer_is_asked_for_the_last_packet_and_counts_as_stalled() {
    let mut client = Client::new();
    client.send(3);
    client.left();
    let mut asked = 0;
    let span = client.context.config.failure_timeout;
    while client.context.moment.now() < span.times(2) {
        let due = client.transfers.due_of(TransferIdx(0));
        client.context.moment.advance(due);
        client.with(|transfers, lent, _| transfers.check(lent, TransferIdx(0)));
        client.transfers.look_at_progress(TransferIdx(0), due);
        assert!(due > span || !client.transfers.is_stalled(TransferIdx(0), due, span));
        asked += client.left();
    }
    let now = client.context.moment.now();
    assert!(client.transfers.is_stalled(TransferIdx(0), now, span));
    assert!((8..100).contains(&asked), "{asked}");
}

#[test]
fn a_message_to_a_near_peer_waits_as_long_as_a_processor_may_be_away() {
    let due = |near| {
        let mut client = Client::new();
        let line = client.sessions.at_mut(SessionIdx(0));
        line.on_path(PathTraits {
            near,
            ..PathTraits::default()
        });
        line.on_round_trip(Nanos::from_micros(10));
        client.send(3);
        client
            .transfers
            .due_of(TransferIdx(0))
            .since(client.context.moment.now())
    };
    let config = Client::new().context.config;
    assert!(config.rto_initial > config.rto_floor);
    assert_eq!(due(true), config.rto_initial);
    assert!(
        due(false) < config.rto_floor,
        "a far peer is probed earlier"
    );
}

#[test]
fn a_response_that_the_server_keeps_is_probed_later_and_a_request_is_not() {
    let mut client = Client::new();
    client
        .sessions
        .at_mut(SessionIdx(0))
        .on_round_trip(Nanos::from_micros(100));
    let idx = client.send(3);
    let after = |client: &mut Client, transfer| {
        client.with(|transfers, lent, _| transfers.probe_after(lent, transfer))
    };
    let of_request = after(&mut client, TransferIdx(0));
    client
        .transfers
        .on_kept(SessionIdx(0), Nanos::from_micros(50));
    assert_eq!(after(&mut client, TransferIdx(0)), of_request);
    client.with(|transfers, lent, session| {
        transfers.end(lent, session, idx);
        let transfer = transfers.insert(session, idx, 3);
        lent.calls.begin_receiving(idx, transfer);
    });
    let of_response = after(&mut client, TransferIdx(0));
    assert_eq!(of_response, of_request + Nanos::from_micros(100));
}

/// A network that lets few packets through at a time.
#[derive(Debug)]
struct Narrow;

impl CongestionControl for Narrow {
    fn on_answer(&mut self, _: Sample) {}

    fn window(&self) -> Option<u32> {
        Some(2)
    }

    fn on_timeout(&mut self, _: Nanos) {}

    fn rate(&self) -> Option<BytesPerSec> {
        None
    }
}

/// The server gives up a message of which no packet comes (rules S9, S14).
#[test]
fn a_message_waits_for_other_messages_for_a_part_of_the_hold_at_most() {
    let mut client = Client::new();
    let path = Path {
        line_rate: 1_000_000_000,
        base_rtt: Nanos::ZERO,
        scheme: Scheme::None,
    };
    let line = client.sessions.at_mut(SessionIdx(0));
    let (pacer, context) = (&mut client.pacer, &mut client.context);
    pacer.set_own_scheme(line, Box::new(Narrow), &path, context);
    let calls: [CallIdx; 3] = std::array::from_fn(|_| client.send(400));
    let hold = client.context.config.response_hold;
    let (mut arrived, mut now) = ([0; 3], client.context.moment.now());
    let mut last = [now; 3];
    for _ in 0..600 {
        now += Nanos::from_millis(10);
        client.context.moment.advance(now);
        client.left();
        let Some(at) = (0..3).find(|at| client.in_flight(calls[*at]) > 0) else {
            panic!("nothing is on its way after {arrived:?}");
        };
        arrived[at] += 1;
        client.arrive(calls[at], arrived[at]);
        assert!(now.since(last[at]) < hold, "{at} waits after {arrived:?}");
        last[at] = now;
    }
    let (least, most) = (arrived.iter().min(), arrived.iter().max());
    assert!(
        most.zip(least)
            .is_some_and(|(most, least)| most - least < 64)
    );
}
