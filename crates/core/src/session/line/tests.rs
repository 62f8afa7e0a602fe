//! One session alone: slots, credits, acknowledgements, and computed fields.

use proptest::prelude::*;

use super::*;
use crate::handle::{EndpointNum, SessionIdx};

fn terms(window: u32, credits: u32) -> Terms {
    Terms {
        peer: PeerId(0),
        window,
        data_size: 1024,
        max_message: 4096,
        credits,
        first_req: ReqNum(0),
    }
}

fn offer() -> SessionOffer {
    SessionOffer {
        session: SessionNum(9),
        token: Token(8),
        window: 8,
        credits: 32,
        data_size: 512,
        max_message: 2048,
        first_req: ReqNum(0),
        keeps_code_rules: true,
    }
}

fn handle(generation: u16) -> Session {
    Session::new(SessionIdx(3), generation, EndpointNum::chosen(1))
}

fn open(window: u32, credits: u32) -> Line {
    let mut line = Line::default();
    line.begin(
        handle(1),
        Token(7),
        SlotIdx(16),
        &terms(window, credits),
        false,
    );
    line.join(PeerId(3), &offer(), Nanos(5));
    line
}

#[test]
fn the_smaller_limits_of_both_sides_count() {
    let line = open(8, 32);
    let terms = line.terms();
    assert_eq!((terms.data_size, terms.max_message), (512, 2048));
    assert!(line.is_single(512) && !line.is_single(513));
    assert_eq!(line.remote(), (SessionNum(9), Token(8)));
    assert_eq!(line.slots(), SlotRange::new(SlotIdx(16), 8));
    assert_eq!(line.slot_at(ReqNum(27)), SlotIdx(19));
}

#[test]
fn no_packet_is_taken_before_the_session_is_open_or_after_its_end() {
    let mut line = Line::default();
    line.begin(handle(1), Token(7), SlotIdx(0), &terms(1, 1), false);
    assert!(!line.takes(7) && !line.can_send());
    line.join(PeerId(3), &offer(), Nanos(5));
    assert!(line.takes(7) && line.can_send());
    line.end();
    assert!(!line.takes(7) && !line.is_live());
    line.check();
}

fn wait(line: &mut Line, waits: bool) {
    match waits {
        true => line.begin_waiting(),
        false => line.end_waiting(),
    }
}

#[test]
fn a_sample_is_asked_for_once_an_interval_and_always_while_paced() {
    let mut line = open(8, 32);
    let interval = Nanos(100);
    assert!(line.ask_for_sample(Nanos(1_000), interval));
    assert!(!line.ask_for_sample(Nanos(1_099), interval));
    line.on_pacing(true);
    assert!(line.ask_for_sample(Nanos(1_099), interval));
}

#[test]
fn silence_counts_from_the_first_question_after_the_last_packet() {
    let mut line = open(8, 32);
    line.on_asked(Nanos(100));
    line.on_asked(Nanos(130));
    assert!(line.is_silent(Nanos(150), Nanos(50)));
    assert!(!line.is_silent(Nanos(150), Nanos(51)));
    line.note_activity(Nanos(160));
    line.note_activity(Nanos(170));
    assert!(
        !line.is_silent(Nanos(900), Nanos(1)),
        "the session has not asked"
    );
    line.on_asked(Nanos(190));
    assert!(line.is_silent(Nanos(200), Nanos(10)));
    assert!(!line.is_silent(Nanos(200), Nanos(11)));
}

#[test]
fn a_session_that_asks_or_is_closed_takes_nothing_without_a_second_look() {
    let mut line = open(8, 32);
    let word = 32_u64 << 32 | 7;
    assert!(line.takes(word));
    assert!(!line.takes(word ^ 1));
    assert!(
        !line.takes(513 << 32 | 7),
        "the message is longer than a packet"
    );
    line.on_asked(Nanos(9));
    assert!(!line.takes(word));
    line.note_activity(Nanos(10));
    assert!(line.takes(word));
    line.end();
    assert!(!line.takes(word) && !line.takes(7));
}

#[test]
fn a_short_request_needs_no_second_look_while_nothing_is_unusual() {
    let mut line = open(8, 8);
    let session = handle(1);
    line.ask_for_sample(Nanos(100), Nanos(50));
    assert!(line.is_plain(session, 32, Nanos(149)));
    assert!(!line.is_plain(session, 32, Nanos(150)), "a sample is due");
    assert!(!line.is_plain(handle(2), 32, Nanos(149)));
    let foreign = Session::new(SessionIdx(3), 1, EndpointNum::chosen(2));
    assert!(!line.is_plain(foreign, 32, Nanos(149)));
    assert!(!line.is_plain(session, 513, Nanos(149)));
    let set_general = |line: &mut Line, general: bool| line.on_bypasses(!general);
    for unusual in [Line::on_pacing, wait, set_general] {
        unusual(&mut line, true);
        assert!(!line.is_plain(session, 32, Nanos(149)));
        unusual(&mut line, false);
    }
    line.take_credits(1);
    assert!(
        !line.is_plain(session, 32, Nanos(149)),
        "a slot lacks a credit"
    );
    line.return_credits(1);
    for _ in 0..8 {
        assert!(line.is_plain(session, 32, Nanos(149)));
        line.take_slot();
    }
    assert!(!line.is_plain(session, 32, Nanos(149)), "no slot is free");
}

#[test]
fn with_fewer_credits_than_slots_each_request_needs_a_second_look() {
    let mut line = open(8, 7);
    line.ask_for_sample(Nanos(100), Nanos(50));
    assert!(!line.is_plain(handle(1), 32, Nanos(149)));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Take,
    Release(u8),
    Wait(bool),
    Pace(bool),
    Sample(u16),
    Ask,
    Hear,
    Part,
    Arrive,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Take),
        any::<u8>().prop_map(Event::Release),
        any::<bool>().prop_map(Event::Wait),
        any::<bool>().prop_map(Event::Pace),
        any::<u16>().prop_map(Event::Sample),
        Just(Event::Ask),
        Just(Event::Hear),
        Just(Event::Part),
        Just(Event::Arrive),
    ]
}

proptest! {
    /// Slots and credits are conserved, and computed fields agree with the others, after any event.
    #[test]
    fn slots_and_credits_are_never_lost(events in prop::collection::vec(event(), 0..200)) {
        let mut line = open(8, 10);
        let (mut taken, mut parts) = (Vec::new(), 0);
        for event in events {
            match event {
                Event::Take if line.can_send() => {
                    let at = line.take_slot().0 - 16;
                    prop_assert!(!taken.contains(&at));
                    taken.push(at);
                }
                Event::Take => prop_assert!(taken.len() == 8 || taken.len() + parts == 10),
                Event::Release(which) if !taken.is_empty() => {
                    let at = taken.swap_remove(usize::from(which) % taken.len());
                    line.release_slot(ReqNum(at));
                }
                Event::Release(_) => {}
                Event::Wait(waiting) => wait(&mut line, waiting),
                Event::Pace(paced) => line.on_pacing(paced),
                Event::Part if line.credits() != 0 => {
                    line.take_credits(1);
                    parts += 1;
                }
                Event::Arrive if parts != 0 => {
                    line.return_credits(1);
                    parts -= 1;
                }
                Event::Part | Event::Arrive => {}
                Event::Ask => line.on_asked(Nanos(1)),
                Event::Hear => line.note_activity(Nanos(2)),
                Event::Sample(now) => {
                    line.ask_for_sample(Nanos(u64::from(now)), Nanos(50));
                }
            }
            line.check();
            prop_assert_eq!(line.in_flight() as usize, taken.len());
            prop_assert_eq!(line.credits() as usize + taken.len() + parts, 10);
        }
    }
}
