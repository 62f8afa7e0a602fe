//! How long a call waits before it asks again.

use super::*;
use crate::tests::{TERMS, context, open_session};

#[test]
fn a_call_asks_several_times_within_the_hold_whatever_was_measured() {
    let millis = [0, 1, 20, 300, 3_000, 100_000].map(Nanos::from_millis);
    for (round_trip, stay) in millis.iter().flat_map(|one| millis.map(|two| (*one, two))) {
        let (mut sessions, session) = open_session(&TERMS);
        let context = context(TERMS.data_size);
        let line = sessions.at_mut(session.index());
        for late in [round_trip, Nanos::ZERO, round_trip] {
            line.on_round_trip(late);
            line.on_residence(stay.0);
        }
        for attempts in 0..=u8::MAX {
            let waits = patience(attempts, line, &context);
            let all = waits.times(ASKS_PER_HOLD);
            assert!(
                all <= context.config.response_hold,
                "{round_trip:?} {stay:?} {waits:?}"
            );
        }
    }
}

#[test]
fn a_slow_handler_does_not_keep_a_call_from_asking_as_often_as_it_was_told_to() {
    let (mut sessions, session) = open_session(&TERMS);
    let mut context = context(TERMS.data_size);
    context.config.probe_max = Nanos::from_millis(20);
    let line = sessions.at_mut(session.index());
    line.on_round_trip(Nanos::from_micros(50));
    line.on_residence(50_000_000);
    assert_eq!(patience(0, line, &context), Nanos::from_millis(20));
}
