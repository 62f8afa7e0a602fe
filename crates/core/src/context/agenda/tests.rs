//! The agenda alone: due work, and work that waits for the loop.

use super::*;

const INTERVAL: Nanos = Nanos(100);

#[test]
fn an_empty_agenda_has_nothing_due() {
    let mut agenda = Agenda::new();
    agenda.find_due(Nanos::MAX);
    assert_eq!(agenda.due(), Nanos::MAX);
    assert!(!agenda.needs_attention());
}

#[test]
fn the_earliest_work_decides_when_the_agenda_is_due() {
    let mut agenda = Agenda::new();
    agenda.on_call(Nanos(0), INTERVAL, false);
    agenda.on_transfer(Nanos(40));
    agenda.set_timer(Nanos(60), TimerToken(1));
    assert_eq!(agenda.due(), Nanos(40));
    agenda.set_transfers(Nanos::MAX);
    agenda.find_due(Nanos::MAX);
    assert_eq!(agenda.due(), Nanos(60));
    assert_eq!(agenda.pop_timer(Nanos(59)), None);
    assert_eq!(agenda.pop_timer(Nanos(60)), Some(TimerToken(1)));
    agenda.find_due(Nanos(70));
    assert_eq!(agenda.due(), Nanos(70), "a paced packet");
    agenda.send_asked_at(Nanos(80));
    agenda.find_due(Nanos::MAX);
    assert_eq!(agenda.due(), Nanos(80), "packets of responses");
    agenda.call_attention_to_asked(Nanos(79));
    assert!(!agenda.needs_attention());
    agenda.call_attention_to_asked(Nanos(80));
    assert!(agenda.needs_attention());
    agenda.find_due(Nanos::MAX);
    assert_eq!(agenda.due(), Nanos(100), "the scan of calls");
}

#[test]
fn a_full_queue_excuses_peers_for_a_while_only() {
    let mut agenda = Agenda::new();
    assert!(agenda.may_blame(Nanos(1_000), true, INTERVAL));
    // However long ago the last scan was, the answer to a call that is due may still be in the
    // queue.
    for begin in [1_001, 50_000] {
        assert!(!agenda.may_blame(Nanos(begin), false, INTERVAL));
        assert!(!agenda.may_blame(Nanos(begin + 399), false, INTERVAL));
        assert!(agenda.may_blame(Nanos(begin + 400), false, INTERVAL));
    }
    assert!(!agenda.may_blame(Nanos(60_000), false, INTERVAL));
    assert!(agenda.may_blame(Nanos(60_001), true, INTERVAL));
    assert!(!agenda.may_blame(Nanos(60_500), false, INTERVAL));
    // The scan found no live call, so the next scan serves later calls.
    agenda.on_scanned(0, true, Nanos::MAX, Nanos(60_600));
    assert!(!agenda.may_blame(Nanos(90_000), false, INTERVAL));
}

#[test]
fn an_endpoint_that_scans_very_late_was_absent() {
    let mut agenda = Agenda::new();
    agenda.on_call(Nanos(0), INTERVAL, false);
    assert_eq!(agenda.absence(Nanos(900), INTERVAL), None);
    assert_eq!(agenda.absence(Nanos(901), INTERVAL), Some(Nanos(801)));
}

#[test]
fn scans_of_a_long_table_go_around_in_parts() {
    let mut agenda = Agenda::new();
    assert_eq!(agenda.next_part(10, 4), (0, 4));
    assert_eq!(agenda.next_part(10, 4), (4, 4));
    assert_eq!(agenda.next_part(10, 4), (8, 4));
    assert_eq!(agenda.next_part(10, 4), (2, 4));
    assert_eq!(agenda.next_part(3, 4), (0, 3));
}

#[test]
fn the_sweep_rests_after_a_round_that_found_nothing() {
    let mut agenda = Agenda::new();
    agenda.expect_sweep(|| INTERVAL, Nanos(0));
    assert!(agenda.sweep_is_due(INTERVAL));
    assert_eq!(agenda.sweep_part(5, 2), 0..3);
    agenda.on_held();
    agenda.on_swept(3, 5, Nanos(200));
    assert_eq!(agenda.sweep_part(5, 2), 3..5);
    agenda.on_swept(5, 5, Nanos(300));
    assert!(
        agenda.sweep_is_due(Nanos(300)),
        "the round had found a response"
    );
    agenda.on_swept(5, 5, Nanos(400));
    assert!(!agenda.sweep_is_due(Nanos(1_000_000)));
}

#[test]
fn attention_ends_when_nothing_is_left() {
    let mut agenda = Agenda::new();
    agenda.on_stalled(SessionIdx(7));
    assert!(agenda.needs_attention());
    agenda.on_drained(false);
    assert!(agenda.needs_attention(), "a session still waits");
    assert_eq!(agenda.pop_stalled(), Some(SessionIdx(7)));
    agenda.on_drained(true);
    assert!(agenda.needs_attention());
    agenda.on_drained(false);
    assert!(!agenda.needs_attention());
}

#[test]
fn the_loop_is_alert_while_anything_waits() {
    let mut agenda = Agenda::new();
    assert!(!agenda.is_alert());
    agenda.call_attention();
    agenda.lower_alert(false);
    assert!(agenda.is_alert(), "a queue was not drained");
    agenda.on_drained(false);
    agenda.lower_alert(true);
    assert!(agenda.is_alert(), "a deferred request may be dropped");
    agenda.lower_alert(false);
    assert!(!agenda.is_alert());
}

#[test]
fn the_loop_is_alert_until_each_postponed_request_has_come_back() {
    let mut agenda = Agenda::new();
    agenda.on_postponed();
    agenda.on_postponed();
    assert!(agenda.is_alert() && agenda.needs_attention());
    agenda.on_drained(false);
    agenda.on_resumed();
    agenda.lower_alert(false);
    assert!(agenda.is_alert() && agenda.has_postponed());
    agenda.on_resumed();
    agenda.lower_alert(false);
    assert!(!agenda.is_alert() && !agenda.has_postponed());
}

/// A request at this place.
fn id(index: u32) -> RequestId {
    RequestId {
        req: dunlin_wire::ReqNum(0),
        index: crate::handle::RequestIdx(index),
        generation: 0,
    }
}

#[test]
fn acknowledgements_come_in_their_order_and_time() {
    let mut agenda = Agenda::new();
    agenda.acknowledge_at(Nanos(10), id(1));
    agenda.acknowledge_at(Nanos(20), id(2));
    assert_eq!(agenda.due(), Nanos(10));
    assert_eq!(agenda.pop_acknowledgement(Nanos(9)), None);
    assert_eq!(agenda.pop_acknowledgement(Nanos(15)), Some(id(1)));
    assert_eq!(agenda.pop_acknowledgement(Nanos(15)), None);
}

#[test]
fn an_answered_request_needs_no_acknowledgement() {
    let mut agenda = Agenda::new();
    agenda.acknowledge_at(Nanos(10), id(1));
    agenda.acknowledge_at(Nanos(20), id(2));
    agenda.on_answered(id(3));
    agenda.on_answered(id(1));
    agenda.find_due(Nanos::MAX);
    assert_eq!(agenda.due(), Nanos(20));
    assert_eq!(agenda.pop_acknowledgement(Nanos(20)), Some(id(2)));
}
