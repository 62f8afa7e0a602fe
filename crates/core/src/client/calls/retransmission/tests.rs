//! How long a call waits before it asks again.

use dunlin_wire::ReqType;

use super::*;
use crate::call::{CallOptions, Tag};
use crate::client::calls::issue::Wish;
use crate::config::{Config, SCAN_LIMIT};
use crate::tests::{TERMS, context, open_session};

#[test]
fn a_call_asks_several_times_within_the_hold_whatever_the_round_trips() {
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
fn a_slow_handler_does_not_keep_a_call_from_asking_as_often_as_configured() {
    let (mut sessions, session) = open_session(&TERMS);
    let mut context = context(TERMS.data_size);
    context.config.probe_max = Nanos::from_millis(20);
    let line = sessions.at_mut(session.index());
    line.on_round_trip(Nanos::from_micros(50));
    line.on_residence(50_000_000);
    assert_eq!(patience(0, line, &context), Nanos::from_millis(20));
}

/// Each scan covers only a part of a long table, so a call is scanned less often.
#[test]
fn a_call_is_excused_for_the_same_time_however_many_calls_there_are() {
    let excused = [1, 8 * SCAN_LIMIT].map(time_until_asked);
    let scan = Config::default().scan_interval.times(8);
    assert!(
        excused[1] <= excused[0] + scan.times(2),
        "{excused:?} must be nearly equal"
    );
}

/// How long an unanswered call is excused, with this number of calls in the table, in a session
/// whose other calls ask and get answers.
fn time_until_asked(calls: usize) -> Nanos {
    let round_trip = Nanos::from_millis(20);
    let (mut sessions, session) = open_session(&TERMS);
    let mut context = context(TERMS.data_size);
    context.config.backlog = u32::MAX;
    let (mut table, mut pacer) = (Calls::default(), Pacer::new(&context.config));
    let slots = sessions.at(session.index()).slots();
    table.open_slots(slots, TERMS.first_req, sessions.slot_count(), 1);
    let line = sessions.at_mut(session.index());
    line.on_round_trip(round_trip);
    for _ in 0..calls {
        let wish = Wish {
            session,
            req_type: ReqType(1),
            request: context.pool.alloc(8).expect("memory"),
            response: context.pool.alloc(8).expect("memory"),
            tag: Tag(1),
            options: CallOptions::default(),
        };
        let issued = table.issue(wish, &mut sessions, &mut context);
        let idx = issued.expect("the session is open").id.index();
        if idx == CallIdx(0) {
            let line = sessions.at_mut(session.index());
            table.start(idx, line, &mut pacer, &mut context);
        }
    }
    let pass = context
        .config
        .scan_interval
        .times(calls.div_ceil(SCAN_LIMIT) as u64);
    let due = patience(0, sessions.at(session.index()), &context);
    let mut now = context.moment.now() + due;
    loop {
        now += pass;
        context.moment.advance(now);
        let line = sessions.at_mut(session.index());
        line.on_asked(now);
        line.note_activity(now);
        match table.find_due(CallIdx(0), true, &sessions, &context) {
            Overdue::Answer => return now,
            found => assert!(matches!(found, Overdue::Not(_)), "{found:?}"),
        }
    }
}
