//! A flow alone: it asks its scheme after each event, and gives each packet a time to leave.

use super::*;
use crate::congestion::tests::link_with;

/// One byte takes a nanosecond.
const LINE_RATE: BytesPerSec = BytesPerSec(1_000_000_000);

fn link() -> Link {
    link_with(LINE_RATE, Nanos::ZERO, 1024)
}

fn sample(rtt: Nanos, now: Nanos) -> Sample {
    Sample {
        rtt: Some(rtt),
        congestion: false,
        packets: 1,
        now,
    }
}

/// A scheme whose rate and window show the last event: the rate is the event's number, and the
/// window is the number of events.
#[derive(Debug, Default)]
struct Recorder {
    last: Option<u64>,
    events: u32,
}

impl Recorder {
    fn note(&mut self, event: u64) {
        self.last = Some(event);
        self.events += 1;
    }
}

impl CongestionControl for Recorder {
    fn on_answer(&mut self, sample: Sample) {
        self.note(sample.now.0);
    }
    fn on_wait(&mut self, packets: u32) {
        self.note(u64::from(packets));
    }
    fn on_loss(&mut self, now: Nanos) {
        self.note(now.0);
    }
    fn on_timeout(&mut self, now: Nanos) {
        self.note(now.0);
    }
    fn on_time(&mut self, now: Nanos) {
        self.note(now.0);
    }
    fn rate(&self) -> Option<BytesPerSec> {
        self.last.map(BytesPerSec)
    }
    fn window(&self) -> Option<u32> {
        Some(self.events)
    }
}

#[test]
fn each_event_reaches_the_scheme_and_its_decision_counts_at_once() {
    let mut flow = Flow::own(Box::new(Recorder::default()), &link());
    let seen = |flow: &Flow| (flow.rate().map(|rate| rate.0), flow.window());
    assert_eq!(seen(&flow), (None, Some(0)));
    flow.on_answer(sample(Nanos(5), Nanos(11)));
    assert_eq!(seen(&flow), (Some(11), Some(1)));
    flow.on_wait(12);
    assert_eq!(seen(&flow), (Some(12), Some(2)));
    flow.on_loss(Nanos(13));
    assert_eq!(seen(&flow), (Some(13), Some(3)));
    flow.on_timeout(Nanos(14));
    assert_eq!(seen(&flow), (Some(14), Some(4)));
    flow.reserve(1, Nanos(15));
    assert_eq!(seen(&flow), (Some(15), Some(5)));
}

#[test]
fn a_packet_takes_its_time_at_the_rate_of_its_departure() {
    let mut flow = Flow::own(Box::new(Recorder::default()), &link());
    // The scheme gets this time before the packet is timed, and makes it the rate: 500 000 000
    // bytes a second.
    let now = Nanos(500_000_000);
    assert_eq!(flow.reserve(1_000, now), now);
    assert_eq!(flow.reserve(1_000, now), now + Nanos(2_000));
}

#[test]
fn without_a_rate_packets_follow_each_other_at_line_rate() {
    let mut flow = Flow::new(Scheme::Swift, &link(), Bypasses::default()).expect("a scheme");
    assert_eq!(flow.rate(), None);
    assert_eq!(flow.reserve(700, Nanos(50)), Nanos(50));
    flow.charge(100);
    assert_eq!(flow.reserve(1, Nanos(60)), Nanos(850));
}

#[test]
fn a_flow_of_timely_takes_new_bypasses() {
    let rate_with = |timely| {
        let mut flow = Flow::new(Scheme::Timely, &link(), Bypasses::default()).expect("a scheme");
        flow.on_bypasses(Bypasses {
            timely,
            ..Bypasses::default()
        });
        let now = Nanos::from_millis(10);
        flow.on_answer(sample(Nanos::from_micros(2), now));
        let long = Nanos::from_millis(2);
        flow.on_answer(sample(long, now + Nanos::from_millis(1)));
        flow.rate()
    };
    // With the bypass, Timely ignores the short round trip, so the long one is the first that
    // counts. Without it, the long one comes too soon after the short one.
    assert!(rate_with(true).is_some());
    assert_eq!(rate_with(false), None);
}
