//! Properties that hold for every scheme on any network.

use proptest::prelude::*;

use super::constants::LEAST_RATE_DIVISOR;
use super::flow::Flow;
use super::*;
use crate::scheme::{Bypasses, Scheme, UnknownScheme};

const LINE: u64 = 3_125_000_000;

/// All schemes except [`Scheme::None`], in the order of [`Scheme::ALL`].
const SCHEMES: [Scheme; 4] = [
    Scheme::Timely,
    Scheme::PatchedTimely,
    Scheme::Dcqcn,
    Scheme::Swift,
];

/// A path with this rate, round trip (zero: not declared) and packet, for the tests of all parts.
pub(super) fn link_with(line_rate: BytesPerSec, base_rtt: Nanos, packet: u32) -> Link {
    Link {
        line_rate,
        base_rtt,
        packet,
        credits: 32,
        dither: 0,
    }
}

fn link() -> Link {
    link_with(BytesPerSec(LINE), Nanos::ZERO, 1048)
}

fn good(now: Nanos) -> Sample {
    Sample {
        rtt: Some(Nanos(5000)),
        congestion: false,
        packets: 1,
        now,
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Answer {
        rtt: Option<u64>,
        congestion: bool,
        packets: u32,
    },
    Loss,
    Timeout,
    Packet(u32),
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let rtt = prop_oneof![
        Just(0_u64),
        1..1_000_u64,
        1_000..100_000_u64,
        100_000..50_000_000_u64,
        Just(u64::MAX)
    ];
    let event = prop_oneof![
        8 => (prop::option::of(rtt), any::<bool>(), 0..64_u32).prop_map(
            |(rtt, congestion, packets)| Event::Answer { rtt, congestion, packets }
        ),
        1 => Just(Event::Loss),
        1 => Just(Event::Timeout),
        4 => (0..9000_u32).prop_map(Event::Packet),
    ];
    let step = prop_oneof![Just(0_u64), 1..10_000_u64, 10_000..100_000_000_u64];
    prop::collection::vec((step, event), 0..200)
}

fn apply(flow: &mut Flow, event: Event, now: Nanos) {
    match event {
        Event::Answer {
            rtt,
            congestion,
            packets,
        } => flow.on_answer(Sample {
            rtt: rtt.map(Nanos),
            congestion,
            packets,
            now,
        }),
        Event::Loss => flow.on_loss(now),
        Event::Timeout => flow.on_timeout(now),
        Event::Packet(bytes) => {
            let at = flow.reserve(bytes, now);
            assert!(at >= now);
        }
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for scheme in Scheme::ALL {
        assert_eq!(scheme.to_string().parse(), Ok(scheme));
    }
    assert_eq!("cubic".parse::<Scheme>(), Err(UnknownScheme));
}

#[test]
fn every_scheme_starts_at_line_rate() {
    for scheme in SCHEMES {
        let flow = Flow::new(scheme, &link(), Bypasses::default()).unwrap();
        assert_eq!(flow.rate(), None, "{scheme}");
    }
    assert!(Flow::new(Scheme::None, &link(), Bypasses::default()).is_none());
}

#[test]
fn a_packet_takes_its_bytes_divided_by_the_rate() {
    assert_eq!(BytesPerSec(1_000_000_000).time_of(1500), Nanos(1500));
    assert_eq!(
        BytesPerSec(1).time_of(u32::MAX),
        Nanos(u64::from(u32::MAX) * 1_000_000_000)
    );
    assert_eq!(BytesPerSec(0).time_of(1), Nanos::from_secs(1));
}

#[test]
fn departures_keep_to_the_rate_and_idle_time_earns_no_burst() {
    let mut flow = Flow::new(Scheme::Timely, &link(), Bypasses::default()).unwrap();
    for ms in 1..=3 {
        flow.on_timeout(Nanos::from_millis(ms));
    }
    // This is an eighth of the line rate: 2.56 ns a byte.
    assert_eq!(flow.rate(), Some(BytesPerSec(LINE / 8)));
    let start = Nanos::from_millis(4);
    assert_eq!(flow.reserve(1000, start), start);
    assert_eq!(flow.reserve(1000, start), start + Nanos(2560));
    flow.charge(3000);
    assert_eq!(flow.reserve(1000, start), start + Nanos(2 * 2560 + 7680));
    let later = Nanos::from_secs(1);
    assert_eq!(flow.reserve(1000, later), later);
    assert_eq!(flow.reserve(1000, later), later + Nanos(2560));
}

proptest! {
    /// The rate is a number between the line rate and its 4096th part. The window is at most the
    /// credits, and 0 stands for less than one packet.
    #[test]
    fn rates_and_windows_stay_within_their_bounds(
        scheme in prop::sample::select(SCHEMES.to_vec()),
        base in prop::sample::select(vec![0_u64, 1, 6_000, 10_000_000]),
        timely in any::<bool>(),
        events in events(),
    ) {
        let link = Link { base_rtt: Nanos(base), ..link() };
        let bypasses = Bypasses { timely, ..Bypasses::default() };
        let mut flow = Flow::new(scheme, &link, bypasses).unwrap();
        let mut now = Nanos(1);
        for (step, event) in events {
            now += Nanos(step);
            apply(&mut flow, event, now);
            if let Some(BytesPerSec(rate)) = flow.rate() {
                prop_assert!(rate < LINE, "{rate}");
                let least = (LINE as f64 / LEAST_RATE_DIVISOR).floor();
                prop_assert!(rate as f64 >= least, "{rate}");
            }
            if let Some(window) = flow.window() {
                prop_assert!((0..=32).contains(&window), "{window}");
            }
        }
    }

    /// After any history, once the network is empty, the session returns to line rate.
    #[test]
    fn every_scheme_returns_to_line_rate_in_an_empty_network(
        scheme in prop::sample::select(SCHEMES.to_vec()),
        events in events(),
    ) {
        let mut flow = Flow::new(scheme, &link(), Bypasses::default()).unwrap();
        let mut now = Nanos(1);
        flow.on_answer(good(now));
        for (step, event) in events {
            // No round trip is shorter than that of the empty network.
            let event = match event {
                Event::Answer { rtt, congestion, packets } => Event::Answer {
                    rtt: rtt.map(|rtt| rtt.max(5000)),
                    congestion,
                    packets,
                },
                other => other,
            };
            now += Nanos(step);
            apply(&mut flow, event, now);
        }
        now += Nanos::from_secs(1);
        let mut answers = 0;
        while flow.rate().is_some() {
            let at = flow.reserve(1048, now).max(now + Nanos(1));
            now = at + Nanos(5000);
            flow.on_answer(good(now));
            answers += 1;
            prop_assert!(answers < 100_000, "{:?}", flow.rate());
        }
    }
}
