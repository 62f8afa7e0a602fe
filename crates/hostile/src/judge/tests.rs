//! Each fault is found, and a run without faults passes.

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
    for _ in 0..3 {
        seen.add(Phase::Elsewhere, calls(1_000_000), vec![Deeds::default()]);
        seen.add(Phase::Attacked, calls(2_900_000), vec![Deeds::default()]);
    }
    seen
}

/// The faults of the run from [`well`] after a change.
fn with(change: impl FnOnce(&mut Seen)) -> Vec<Fault> {
    let mut seen = well();
    change(&mut seen);
    faults(&seen, false)
}

#[test]
fn a_run_in_which_all_is_well_has_no_fault() {
    assert_eq!(with(|_| {}), []);
}

#[test]
fn each_failure_that_the_client_sees_is_a_fault() {
    let lost = |seen: &mut Seen| seen.elsewhere.stats.lost = 2;
    assert_eq!(with(lost), [Fault::LostSessions(2)]);
    let wrong = |seen: &mut Seen| seen.storm.stats.wrong = 1;
    assert_eq!(with(wrong), [Fault::WrongAnswers(1)]);
    let failed = |seen: &mut Seen| seen.attacked.stats.failed = 3;
    assert_eq!(with(failed), [Fault::FailedCalls(3)]);
    let refused = |seen: &mut Seen| seen.quiet.stats.refused = 1;
    assert_eq!(with(refused), [Fault::RefusedSessions(1)]);
    let silent = |seen: &mut Seen| seen.attacked = Record::default();
    assert_eq!(with(silent), [Fault::NoCalls]);
}

#[test]
fn an_attack_that_does_nothing_to_the_server_is_a_fault() {
    let of = |packets, answered, words, kills| Deeds {
        packets,
        answered,
        words,
        kills,
        stops: kills,
        ..Deeds::default()
    };
    let run = |deeds: Deeds, refused| {
        with(move |seen| {
            seen.attacks = Attack::ALL.to_vec();
            // Attacks on another server do not count.
            seen.elsewhere.deeds = of(1, 1, 1, 1);
            seen.attacked.deeds = deeds;
            seen.counts.refused = refused;
        })
    };
    let idle = |attack: Attack| [Fault::Idle(attack.name())];
    assert_eq!(run(of(1, 1, 1, 1), 1), []);
    assert_eq!(run(of(0, 1, 1, 1), 1), idle(Attack::Blaster));
    assert_eq!(run(of(1, 1, 1, 1), 0), idle(Attack::Blaster));
    assert_eq!(run(of(1, 0, 1, 1), 1), idle(Attack::Floods));
    assert_eq!(run(of(1, 1, 0, 1), 1), idle(Attack::Scribbler));
    assert_eq!(run(of(1, 1, 1, 0), 1), idle(Attack::Drills));
}

/// A phase in which the client's calls took this long.
fn phase(latency_ns: u64) -> Stats {
    Stats {
        latencies: vec![(latency_ns, 20)],
        ..Stats::default()
    }
}

#[test]
fn a_client_slower_than_during_an_attack_on_another_server_is_a_fault() {
    let slow = |seen: &mut Seen| {
        let mut add = |_| seen.add(Phase::Attacked, phase(3_100_000), Vec::new());
        (0..4).for_each(&mut add);
    };
    assert!(matches!(with(slow)[..], [Fault::Slow { .. }]));
    // Slow calls in a storm are not a fault, because a storm fills the server's socket.
    let storm = |seen: &mut Seen| seen.add(Phase::Storm, phase(90_000_000), Vec::new());
    assert_eq!(with(storm), []);
    // One slow phase among fast ones does not change the median.
    let once = |seen: &mut Seen| seen.add(Phase::Attacked, phase(50_000_000), Vec::new());
    assert_eq!(with(once), []);
    let fast = |seen: &mut Seen| {
        (0..4).for_each(|_| seen.add(Phase::Elsewhere, phase(90_000), Vec::new()));
    };
    assert!(matches!(with(fast)[..], [Fault::Slow { .. }]));
}

#[test]
fn requests_that_come_twice_or_change_are_faults() {
    let events = |seen: &mut Seen| seen.events = vec![Event::Changed, Event::Twice(7)];
    assert_eq!(with(events), [Fault::Twice(1), Fault::Changed(1)]);
}

#[test]
fn memory_may_grow_a_little_but_not_forever() {
    let peak = |seen: &mut Seen| seen.memory_kib[3] = 10_000 + GROWTH_KIB + 1;
    assert!(matches!(with(peak)[..], [Fault::Grew { .. }]));
    let growing = |by: u64| {
        with(|seen| {
            let each = seen.memory_kib.iter_mut().zip(0_u64..);
            each.for_each(|(kib, look)| *kib = 10_000 + look * by / 200);
        })
    };
    assert_eq!(growing(4_000), []);
    assert!(matches!(growing(4_300)[..], [Fault::Grows { .. }]));
    // The memory stops growing before the second half.
    let step = |seen: &mut Seen| seen.memory_kib[150..].fill(40_000);
    assert_eq!(with(step), []);
}

#[test]
fn only_latencies_are_ignored_in_a_phase_in_which_the_machine_stood_still() {
    let rest = Duration::from_secs(1);
    let late = |seen: &mut Seen| {
        for _ in 0..4 {
            seen.stood_still(Phase::Attacked, rest, phase(50_000_000), Vec::new());
        }
    };
    assert_eq!(with(late), []);
    let lost = |seen: &mut Seen| {
        let stats = Stats {
            lost: 2,
            ..phase(1)
        };
        seen.stood_still(Phase::Attacked, rest, stats, Vec::new());
    };
    assert_eq!(with(lost), [Fault::LostSessions(2)]);
    // If the machine stood still in every attack, the run has shown nothing.
    let all = |seen: &mut Seen| {
        seen.attacked = Record::default();
        seen.stood_still(Phase::Attacked, rest, phase(1), Vec::new());
    };
    assert_eq!(with(all), [Fault::NoCalls]);
}

#[test]
fn a_run_that_must_reach_the_figures_and_does_not_is_a_fault() {
    let mut seen = well();
    seen.counts.read = PACKETS;
    seen.attacked.deeds.answered = 7;
    seen.storm.deeds.answered = CONNECTIONS - 7;
    assert_eq!(faults(&seen, true), []);
    seen.counts.read -= 1;
    assert!(matches!(faults(&seen, true)[..], [Fault::TooFew { .. }]));
    assert_eq!(faults(&seen, false), []);
    (seen.counts.read, seen.attacked.deeds.answered) = (PACKETS, 6);
    assert!(matches!(faults(&seen, true)[..], [Fault::TooFew { .. }]));
}

#[test]
fn a_complaint_of_a_drill_is_a_fault_even_if_the_run_was_interrupted() {
    let complaint = |seen: &mut Seen| {
        seen.interrupted = true;
        seen.attacked.p99s_ns.clear();
        seen.elsewhere.deeds.complaints.push("late".to_owned());
    };
    assert_eq!(with(complaint), [Fault::Complaint("late".to_owned())]);
}
