//! Each fault is found, and a run without any passes.

use super::*;

/// A run in which all is well.
fn well() -> Seen {
    let mut seen = Seen {
        memory_before_kib: 10_000,
        memory_kib: vec![12_000; 400],
        ..Seen::default()
    };
    let calls = |latency_ns: u64| Stats {
        calls: 1_000,
        latencies: vec![(latency_ns, 1_000)],
        ..Stats::default()
    };
    seen.add(Phase::Quiet, calls(100_000), Vec::new());
    seen.add(Phase::Elsewhere, calls(1_000_000), vec![Deeds::default()]);
    seen.add(Phase::Attacked, calls(2_900_000), vec![Deeds::default()]);
    seen
}

/// The faults of such a run with something changed.
fn with(change: impl FnOnce(&mut Seen)) -> Vec<Fault> {
    let mut seen = well();
    change(&mut seen);
    faults(&seen)
}

#[test]
fn a_run_in_which_all_is_well_has_no_fault() {
    assert_eq!(with(|_| {}), []);
}

#[test]
fn everything_that_the_client_sees_is_a_fault() {
    let lost = |seen: &mut Seen| seen.elsewhere.stats.lost = 2;
    assert_eq!(with(lost), [Fault::LostSessions(2)]);
    let wrong = |seen: &mut Seen| seen.attacked.stats.wrong = 1;
    assert_eq!(with(wrong), [Fault::WrongAnswers(1)]);
    let failed = |seen: &mut Seen| seen.attacked.stats.failed = 3;
    assert_eq!(with(failed), [Fault::FailedCalls(3)]);
    let refused = |seen: &mut Seen| seen.quiet.stats.refused = 1;
    assert_eq!(with(refused), [Fault::RefusedSessions(1)]);
    let silent = |seen: &mut Seen| seen.attacked.stats = Stats::default();
    assert_eq!(with(silent), [Fault::NoCalls]);
}

#[test]
fn a_client_that_is_slower_than_beside_equally_busy_processes_is_a_fault() {
    let slow = |seen: &mut Seen| {
        let some = Stats {
            latencies: vec![(3_100_000, 20)],
            ..Stats::default()
        };
        seen.add(Phase::Attacked, some, Vec::new());
    };
    assert!(matches!(with(slow)[..], [Fault::Slow { .. }]));
    let fast = |seen: &mut Seen| {
        seen.elsewhere.stats.latencies = vec![(1_000, 1_000)];
        seen.attacked.stats.latencies = vec![(1_900_000, 1_000)];
    };
    assert_eq!(with(fast), []);
}

#[test]
fn what_the_server_says_is_a_fault() {
    let events = |seen: &mut Seen| seen.events = vec![Event::Changed, Event::Twice(7)];
    assert_eq!(with(events), [Fault::Twice(1), Fault::Changed(1)]);
}

#[test]
fn memory_may_grow_a_little_and_not_for_ever() {
    let peak = |seen: &mut Seen| seen.memory_kib[3] = 10_000 + GROWTH_KIB + 1;
    assert!(matches!(with(peak)[..], [Fault::Grew { .. }]));
    let growing = |seen: &mut Seen| {
        let each = seen.memory_kib.iter_mut().zip((0_u64..).step_by(150));
        each.for_each(|(kib, more)| *kib = 10_000 + more);
    };
    assert_eq!(with(growing), []);
    let growing = |seen: &mut Seen| {
        seen.memory_kib[350..].fill(12_000 + LATE_GROWTH_KIB + 1);
    };
    assert!(matches!(with(growing)[..], [Fault::Grows { .. }]));
}

#[test]
fn of_a_phase_in_which_the_machine_stood_still_only_wrong_answers_count() {
    let stats = |wrong| Stats {
        wrong,
        lost: 2,
        failed: 3,
        refused: 1,
        ..Stats::default()
    };
    let rest = Duration::from_secs(1);
    assert_eq!(with(|seen| seen.stood_still(rest, stats(0))), []);
    let wrong = |seen: &mut Seen| seen.stood_still(rest, stats(1));
    assert_eq!(with(wrong), [Fault::WrongAnswers(1)]);
    // The machine stood still in every attacked phase.
    let all = |seen: &mut Seen| {
        seen.attacked = Record::default();
        seen.stood_still(rest, stats(0));
    };
    assert_eq!(with(all), [Fault::NoCalls]);
}

#[test]
fn complaints_of_drills_are_faults_also_of_a_run_that_was_stopped() {
    let complaint = |seen: &mut Seen| {
        seen.interrupted = true;
        seen.attacked.stats.latencies.clear();
        seen.elsewhere.deeds.complaints.push("late".to_owned());
    };
    assert_eq!(with(complaint), [Fault::Complaint("late".to_owned())]);
}
