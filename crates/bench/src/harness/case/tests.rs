//! Rounds, ratios and validity, with probes whose values are known.

use harness::state::State;

use super::*;
use crate::harness::plan;
use crate::harness::plan::{Plan, leave_out};
use crate::harness::probe::Metric;

const METRICS: [Metric; 2] = [
    Metric {
        name: "rtt",
        unit: "ns",
        against: Against::Baseline(1),
    },
    Metric {
        name: "losses",
        unit: "count",
        against: Against::Nothing,
    },
];

/// A probe that returns the next of its values for each metric, and fails when there are no more.
struct Script(Vec<f64>, bool);

impl Probe for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        anyhow::ensure!(!self.0.is_empty(), "no more values");
        let value = self.0.remove(0);
        Ok(Measurement {
            values: vec![value, value * 10.0],
            alarms: vec![format!("value {value}")],
            details: Vec::new(),
        })
    }

    fn is_plausible(&self, medians: &[f64]) -> bool {
        assert_eq!(medians.len(), 2);
        self.1
    }
}

/// Measures all rounds as if the machine stayed in one state.
fn run(cases: &mut [Case], plan: Plan) -> anyhow::Result<()> {
    plan::run(cases, plan, &mut || Ok(Some(100.0)))
}

/// A plan as short as possible.
fn rounds(runs: u32) -> Plan {
    Plan {
        runs,
        budget: Duration::from_millis(1),
        verbose: false,
    }
}

fn case(subject: &[f64], baseline: &[f64], plausible: bool) -> Case {
    let mut case = Case::new(
        "test",
        "shm",
        &[("size", 8)],
        Script(subject.to_vec(), !plausible),
    );
    case.baseline = Some(Measured::new(Script(baseline.to_vec(), plausible)));
    case
}

#[test]
fn rows_are_medians_over_rounds_and_ratios_to_the_named_figure() {
    let mut cases = [case(&[5.0, 40.0, 6.0], &[1.0, 2.0, 3.0], true)];
    run(&mut cases, rounds(3)).unwrap();
    let rows = cases[0].rows();
    assert_eq!(
        (rows[0].median, rows[0].min, rows[0].max, rows[0].runs),
        (6.0, 5.0, 40.0, 3)
    );
    assert_eq!((rows[0].baseline, rows[0].ratio), (Some(20.0), Some(0.3)));
    assert_eq!(
        (rows[1].median, rows[1].baseline, rows[1].ratio),
        (60.0, None, None)
    );
    assert_eq!(rows[1].baseline_name, None);
}

#[test]
fn the_baseline_decides_whether_a_row_is_valid() {
    for plausible in [true, false] {
        let mut cases = [case(&[1.0], &[1.0], plausible)];
        run(&mut cases, rounds(1)).unwrap();
        assert!(cases[0].rows().iter().all(|row| row.valid == plausible));
    }
    let mut alone = [Case::new::<u32>(
        "raw",
        "shm",
        &[],
        Script(vec![1.0], false),
    )];
    run(&mut alone, rounds(1)).unwrap();
    assert!(
        !alone[0].rows()[0].valid,
        "without a baseline the subject itself decides"
    );
}

/// A probe that is overloaded if its first value is 90 or more.
struct Busy(Script);

impl Probe for Busy {
    fn name(&self) -> &'static str {
        "busy"
    }

    fn metrics(&self) -> &'static [Metric] {
        self.0.metrics()
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        self.0.measure(span)
    }

    fn is_overloaded(&self, medians: &[f64]) -> bool {
        medians[0] >= 90.0
    }
}

#[test]
fn a_row_is_invalid_if_subject_or_baseline_was_limited_by_its_own_client() {
    for (subject, baseline, valid) in [(89.0, 89.0, true), (90.0, 1.0, false), (1.0, 90.0, false)] {
        let busy = |value| Busy(Script(vec![value], true));
        let case = Case::new::<u32>("test", "shm", &[], busy(subject)).against(busy(baseline));
        let mut cases = [case];
        run(&mut cases, rounds(1)).unwrap();
        assert!(cases[0].rows().iter().all(|row| row.valid == valid));
    }
}

#[test]
fn what_was_measured_before_a_failure_stays() {
    let mut cases = [
        case(&[1.0, 2.0], &[1.0, 1.0], true),
        case(&[1.0], &[1.0, 1.0], true),
    ];
    let error = run(&mut cases, rounds(3)).unwrap_err();
    assert_eq!(error.to_string(), "no more values");
    assert_eq!(cases[0].rows()[0].runs, 2);
    assert_eq!(cases[1].rows()[0].runs, 1);
    assert_eq!(cases[1].baseline.as_ref().unwrap().rounds.len(), 1);
}

#[test]
fn no_round_means_no_rows() {
    assert_eq!(case(&[], &[], true).rows().len(), 0);
}

#[test]
fn what_should_not_have_happened_is_remembered_with_its_round() {
    let mut cases = [case(&[1.0, 2.0], &[1.0, 1.0], true)];
    run(&mut cases, rounds(2)).unwrap();
    let alarms = [1, 2].map(|n| format!("test shm, size 8, round {n}: value {n}"));
    assert_eq!(cases[0].alarms(), alarms);
}

#[test]
fn a_case_that_takes_longer_than_there_is_time_is_left_out() {
    let plan = |budget| Plan {
        budget,
        ..rounds(3)
    };
    let overhead = case(&[], &[], true).overhead();
    assert_eq!(
        overhead,
        2 * crate::harness::probe::SET_UP + 3 * PING_TAKES,
        "subject and baseline, and ping-pongs around them"
    );
    let mut cases = vec![case(&[], &[], true)];
    assert!(leave_out(&mut cases, plan(3 * overhead)).is_empty());
    let short = 3 * overhead - Duration::from_nanos(1);
    assert_eq!(
        leave_out(&mut cases, plan(short)),
        ["test shm, size 8: takes 0 s"]
    );
    assert!(cases.is_empty());
}

/// A metric that is compared with another value of the same measurement.
struct Alone;

impl Probe for Alone {
    fn name(&self) -> &'static str {
        "alone"
    }

    fn metrics(&self) -> &'static [Metric] {
        &[Metric {
            name: "rtt",
            unit: "ns",
            against: Against::Own {
                index: 1,
                name: "itself",
            },
        }]
    }

    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        Ok(vec![6.0, 4.0].into())
    }
}

#[test]
fn a_figure_can_be_compared_with_another_of_the_same_measurement() {
    let mut cases = [Case::new::<u32>("test", "shm", &[], Alone)];
    run(&mut cases, rounds(1)).unwrap();
    let rows = cases[0].rows();
    assert_eq!(rows.len(), 1, "what it is compared with is not a row");
    assert_eq!((rows[0].baseline, rows[0].ratio), (Some(4.0), Some(1.5)));
    assert_eq!(rows[0].baseline_name.as_deref(), Some("itself"));
}

/// Measures one round for each triple of ping-pong times.
fn run_between(pings: &[[f64; 3]], case: Case) -> Case {
    let mut all = pings.as_flattened().iter().copied();
    let plan = rounds(u32::try_from(pings.len()).unwrap());
    let mut cases = [case];
    plan::run(&mut cases, plan, &mut || Ok(all.next())).unwrap();
    assert_eq!(
        all.next(),
        None,
        "one before and one after each measurement"
    );
    let [case] = cases;
    case
}

#[test]
fn rows_are_made_of_the_rounds_of_one_state() {
    let near = [100.0, 110.0, 105.0];
    let pings = [near, [100.0, 105.0, 300.0], [300.0; 3], near];
    let case = case(&[5.0, 6.0, 70.0, 9.0], &[1.0, 1.0, 8.0, 3.0], true);
    let case = run_between(&pings, case);
    assert_eq!(case.rounds(), [4, 2]);
    let rows = case.rows();
    assert_eq!((rows[0].median, rows[0].max, rows[0].runs), (7.0, 9.0, 2));
    assert_eq!(rows[0].baseline, Some(20.0), "of the same rounds");
    let state = State {
        ping_ns: 105.0,
        min: 105.0,
        max: 105.0,
        left_out: 2,
    };
    assert!(
        rows.iter()
            .all(|row| row.state == Condition::Steady(state) && row.valid)
    );
}

#[test]
fn without_a_steady_round_the_rows_are_invalid() {
    let case = case(&[5.0, 6.0], &[1.0, 1.0], true);
    let case = run_between(&[[100.0, 100.0, 140.0]; 2], case);
    assert_eq!(case.rounds(), [2, 2]);
    let rows = case.rows();
    assert_eq!(
        (rows[0].median, rows[0].runs),
        (5.5, 2),
        "nothing is hidden"
    );
    let changing = Condition::Without(Reason::Changing);
    assert!(rows.iter().all(|row| row.state == changing && !row.valid));
}

#[test]
fn where_no_ping_pong_can_be_played_rows_have_no_state() {
    let mut cases = [case(&[5.0], &[1.0], true)];
    plan::run(&mut cases, rounds(1), &mut || Ok(None)).unwrap();
    let rows = cases[0].rows();
    let unknown = Condition::Without(Reason::NotMeasured);
    assert!(rows.iter().all(|row| row.state == unknown && row.valid));
}
