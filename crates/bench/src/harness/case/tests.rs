//! Rounds, ratios and validity, with probes whose values are known.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::Context;
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

/// A probe that fails in the rounds without a value, and counts how often it is asked.
struct Failing(Vec<Option<f64>>, Rc<Cell<usize>>, bool);

impl Probe for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS[1..]
    }

    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        self.1.set(self.1.get() + 1);
        let value = self.0.remove(0).context("no processor for 10 s")?;
        Ok(vec![value].into())
    }

    fn is_timed(&self) -> bool {
        self.2
    }
}

/// A case that fails in the rounds without a value, and the number of rounds that are measured.
fn failing(values: &[Option<f64>], is_timed: bool) -> (Case, Rc<Cell<usize>>) {
    let asked = Rc::new(Cell::new(0));
    let probe = Failing(values.to_vec(), Rc::clone(&asked), is_timed);
    (Case::new::<u32>("test", "shm", &[], probe), asked)
}

#[test]
fn after_a_round_that_fails_the_next_one_begins() {
    let (flaky, asked) = failing(&[Some(1.0), None, Some(3.0)], true);
    let mut cases = [flaky, case(&[5.0; 3], &[1.0; 3], true)];
    run(&mut cases, rounds(3)).unwrap();
    let row = &cases[0].rows()[0];
    assert_eq!((row.median, row.runs, row.valid), (2.0, 2, true));
    assert_eq!((asked.get(), cases[1].rows()[0].runs), (3, 3));
    let said = "the machine is busy: 1 of 3 rounds of test shm failed: no processor for 10 s";
    assert_eq!(cases[0].failures().as_deref(), Some(said));
    assert_eq!(cases[1].failures(), None);
    assert!(cases.iter().all(|case| case.check().is_ok()));
}

#[test]
fn a_row_is_invalid_if_half_of_its_rounds_failed() {
    let (half, _) = failing(&[Some(1.0), None, None, Some(3.0)], true);
    let mut cases = [half];
    run(&mut cases, rounds(4)).unwrap();
    let row = &cases[0].rows()[0];
    assert_eq!((row.runs, row.valid), (2, false));
    assert!(cases[0].check().is_ok(), "there are values");
}

#[test]
fn a_case_without_a_good_round_is_given_up_and_is_an_error() {
    let (hopeless, asked) = failing(&[None; 5], true);
    let mut cases = [hopeless, case(&[5.0; 5], &[1.0; 5], true)];
    run(&mut cases, rounds(5)).unwrap();
    assert_eq!((asked.get(), cases[0].rows().len()), (3, 0));
    let error = cases[0].check().unwrap_err().to_string();
    let said = "no round of test shm succeeded; the last: no processor for 10 s";
    assert_eq!(error, said);
    assert_eq!(cases[1].rows()[0].runs, 5);
}

#[test]
fn a_failed_round_of_the_subject_leaves_no_value_of_its_baseline() {
    let mut cases = [case(&[1.0], &[1.0, 2.0, 3.0], true)];
    run(&mut cases, rounds(2)).unwrap();
    assert_eq!(cases[0].baseline.as_ref().unwrap().rounds.len(), 1);
    assert_eq!(cases[0].rows()[0].runs, 1);
}

#[test]
fn counts_that_fail_and_ctrl_c_end_the_run_at_once() {
    let (counted, asked) = failing(&[None; 3], false);
    let error = run(&mut [counted], rounds(3)).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), asked.get()),
        ("no processor for 10 s", 1)
    );
    let (timed, _) = failing(&[None; 3], true);
    let stop = || Err(signal::Interrupted.into());
    let error = plan::run(&mut [timed], rounds(3), &mut || stop()).unwrap_err();
    assert!(error.is::<signal::Interrupted>());
}

#[test]
fn no_round_means_no_rows() {
    assert_eq!(case(&[], &[], true).rows().len(), 0);
}

#[test]
fn alarms_are_remembered_with_their_round() {
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
    assert_eq!(rows.len(), 1, "the value to compare with is not a row");
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
fn without_ping_pongs_rows_have_no_state() {
    let mut cases = [case(&[5.0], &[1.0], true)];
    plan::run(&mut cases, rounds(1), &mut || Ok(None)).unwrap();
    let rows = cases[0].rows();
    let unknown = Condition::Without(Reason::NotMeasured);
    assert!(rows.iter().all(|row| row.state == unknown && row.valid));
}

#[test]
fn a_row_is_measured_if_enough_rounds_count_or_its_figure_is_fixed() {
    for (rounds_run, measured) in [(6, false), (7, true)] {
        let mut cases = [case(&[5.0; 7], &[1.0; 7], true)];
        run(&mut cases, rounds(rounds_run)).unwrap();
        let row = &cases[0].rows()[0];
        assert_eq!((row.measured, row.valid), (Some(measured), true));
    }
    let (fixed, _) = failing(&[Some(1.0)], false);
    let mut cases = [fixed];
    run(&mut cases, rounds(1)).unwrap();
    assert_eq!(cases[0].rows()[0].measured, Some(true));
}

/// Seven rounds, of which one was measured in another state.
#[test]
fn rounds_of_other_states_do_not_count_towards_a_measurement() {
    let mut cases = [case(&[5.0; 7], &[1.0; 7], true)];
    let mut played = 0;
    let mut ping = || {
        played += 1;
        Ok(Some(if played <= 3 { 500.0 } else { 100.0 }))
    };
    plan::run(&mut cases, rounds(7), &mut ping).unwrap();
    let row = &cases[0].rows()[0];
    assert_eq!((row.runs, row.measured), (6, Some(false)));
    assert_eq!(row.shortage().unwrap(), "not measured: 6 of 7 rounds");
}
