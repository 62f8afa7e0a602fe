//! The pacer alone, with a scheme that never changes.

use dunlin_wire::ReqNum;

use super::*;
use crate::congestion::tests::link_with;
use crate::congestion::{CongestionControl, Link};
use crate::handle::{FlowIdx, Session};
use crate::scheme::Scheme;

/// One byte takes a nanosecond.
const LINE_RATE: BytesPerSec = BytesPerSec(1_000_000_000);

/// A user's scheme whose rate and window never change.
#[derive(Debug)]
struct Fixed {
    rate: Option<BytesPerSec>,
    window: Option<u32>,
}

impl CongestionControl for Fixed {
    fn on_answer(&mut self, _: Sample) {}
    fn on_loss(&mut self, _: Nanos) {}
    fn on_timeout(&mut self, _: Nanos) {}
    fn rate(&self) -> Option<BytesPerSec> {
        self.rate
    }
    fn window(&self) -> Option<u32> {
        self.window
    }
}

fn link() -> Link {
    link_with(LINE_RATE, Nanos::ZERO, 1024)
}

fn with(rate: Option<BytesPerSec>, window: Option<u32>) -> (Pacer, FlowIdx) {
    let mut pacer = Pacer::new(&Config::default());
    let flow = pacer.begin(Flow::own(Box::new(Fixed { rate, window }), &link()), None);
    (pacer, flow)
}

#[test]
fn a_session_at_line_rate_need_not_wait() {
    let (mut pacer, flow) = with(None, None);
    assert_eq!(pacer.must_pace(flow, 32), Some(false));
    assert_eq!(pacer.reserve(flow, Way::Out, 1_000, Nanos(5)), None);
    assert_eq!(pacer.must_pace(FlowIdx::NONE, 32), None);
    let limited = Bypasses {
        limiter: false,
        ..Bypasses::default()
    };
    pacer.set_bypasses(limited);
    assert_eq!(pacer.must_pace(flow, 32), Some(true));
}

#[test]
fn a_session_without_a_flow_asks_for_fewer_round_trips() {
    let (mut pacer, flow) = with(None, None);
    assert_eq!(pacer.sample_interval(flow), Nanos::from_micros(10));
    assert_eq!(
        pacer.sample_interval(FlowIdx::NONE),
        Nanos::from_micros(100)
    );
    pacer.on_sessions(20_000);
    assert_eq!(
        pacer.sample_interval(FlowIdx::NONE),
        Nanos::from_millis(250)
    );
    pacer.on_sessions(1 << 24);
    assert_eq!(
        pacer.sample_interval(FlowIdx::NONE),
        Nanos::from_millis(1000)
    );
    pacer.on_sessions(8);
    assert_eq!(
        pacer.sample_interval(FlowIdx::NONE),
        Nanos::from_micros(100)
    );
    let each = Bypasses {
        timely: false,
        ..Bypasses::default()
    };
    pacer.set_bypasses(each);
    assert_eq!(pacer.sample_interval(flow), Nanos::ZERO);
    assert_eq!(pacer.sample_interval(FlowIdx::NONE), Nanos::ZERO);
}

#[test]
fn packets_reserve_departures_one_after_the_other() {
    let (mut pacer, flow) = with(Some(BytesPerSec(LINE_RATE.0 / 2)), None);
    let now = Nanos(100);
    assert_eq!(pacer.must_pace(flow, 32), Some(true));
    assert_eq!(
        pacer.reserve(flow, Way::Out, 1_000, now),
        None,
        "the first packet leaves"
    );
    assert_eq!(
        pacer.reserve(flow, Way::Out, 1_000, now),
        Some(Nanos(2_100))
    );
    pacer.charge(flow, Way::Out, 500);
    assert_eq!(
        pacer.reserve(flow, Way::Out, 1_000, now),
        Some(Nanos(5_100))
    );
}

#[test]
fn a_window_below_the_credits_paces_large_messages() {
    let (pacer, flow) = with(None, Some(4));
    assert_eq!(pacer.must_pace(flow, 4), Some(false));
    assert_eq!(pacer.must_pace(flow, 5), Some(true));
    assert_eq!(pacer.window(flow, Way::Out), Some(4));
}

#[test]
fn an_ended_flow_is_forgotten_and_its_place_reused() {
    let (mut pacer, flow) = with(None, None);
    assert!(pacer.on_loss(flow, Way::Out, Nanos(1)));
    pacer.end(flow);
    pacer.end(FlowIdx::NONE);
    assert!(!pacer.on_loss(flow, Way::Out, Nanos(1)));
    let again = Flow::new(Scheme::Swift, &link(), Bypasses::default()).expect("Swift has a flow");
    assert_eq!(pacer.begin(again, None), flow);
}

#[test]
fn a_held_packet_comes_up_at_its_time() {
    let (mut pacer, _) = with(None, None);
    let at = Nanos::from_micros(10);
    let entry = Paced {
        session: Session::NONE,
        req: ReqNum(8),
        packet: 2,
        at,
    };
    assert_eq!(pacer.next_due(), Nanos::MAX);
    pacer.hold(entry, Nanos::ZERO);
    let due = pacer.next_due();
    assert!(due >= at && pacer.pop_due(due.since(Nanos(1))).is_none());
    assert_eq!(pacer.pop_due(due), Some(entry));
}
