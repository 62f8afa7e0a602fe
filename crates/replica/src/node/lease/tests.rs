//! When a lease begins and ends.

use super::*;

const TERM: u64 = 7;

#[test]
fn a_lease_begins_with_the_question_and_ends_by_the_clock() {
    let (mut lease, tick) = (Lease::default(), Nanos::from_millis(1));
    assert!(!lease.holds(TERM));
    lease.on_time(Nanos::from_millis(100));
    lease.on_asked(1);
    lease.on_time(Nanos::from_millis(110));
    assert!(!lease.holds(TERM), "no majority has answered");
    lease.on_confirmed(&1_u64.to_le_bytes(), tick);
    assert!(lease.holds(TERM));
    // The lease lasts 29 ticks of 1 ms, less an eighth.
    lease.on_time(Nanos::from_millis(125));
    assert!(lease.holds(TERM));
    lease.on_time(Nanos::from_millis(126));
    assert!(!lease.holds(TERM));
    lease.on_confirmed(&1_u64.to_le_bytes(), tick);
    assert!(!lease.holds(TERM), "a question is answered once");
    lease.on_asked(2);
    lease.end();
    lease.on_confirmed(&2_u64.to_le_bytes(), tick);
    assert!(!lease.holds(TERM), "it was asked in an earlier term");
}

#[test]
fn a_leader_that_hands_over_has_no_lease_in_its_term_any_more() {
    let (mut lease, tick) = (Lease::default(), Nanos::from_millis(1));
    let confirm = |lease: &mut Lease, question: u64| {
        lease.on_asked(question);
        lease.on_confirmed(&question.to_le_bytes(), tick);
    };
    confirm(&mut lease, 1);
    assert!(lease.holds(TERM));
    lease.give_up(TERM);
    assert!(!lease.holds(TERM));
    // The node has no lease even after the hand-over has failed, because the request may still
    // arrive.
    confirm(&mut lease, 2);
    assert!(!lease.holds(TERM));
    assert!(lease.holds(TERM + 1));
}
