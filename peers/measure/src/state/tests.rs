//! Which samples count, by their ping-pongs.

use super::*;
use crate::load::Report;

fn samples(pings: &[[f64; 2]]) -> Vec<Sample> {
    let sample = |pings: &[f64; 2]| Sample {
        report: Report {
            median_ns: 1.0,
            p99_ns: 1.0,
            calls_per_s: 1.0,
            cpu_s: 1.0,
            lost: 0,
        },
        pings: pings.to_vec(),
        system_calls: None,
    };
    pings.iter().map(sample).collect()
}

#[test]
fn samples_of_the_most_frequent_state_of_the_whole_run_count() {
    let one = samples(&[[100.0, 110.0], [400.0, 410.0], [105.0, 300.0]]);
    let other = samples(&[[400.0, 400.0], [420.0, 430.0], [415.0, 400.0]]);
    let state = State::most_frequent(one.iter().chain(&other));
    let (few, condition, is_valid) = counted(&one, state.as_ref());
    let left_out = condition.state().map(|state| state.left_out);
    assert_eq!((few.len(), left_out, is_valid), (1, Some(2), true));
    assert_eq!(few[0].pings, [400.0, 410.0]);
    let (all, condition, is_valid) = counted(&other, state.as_ref());
    let left_out = condition.state().map(|state| state.left_out);
    assert_eq!((all.len(), left_out, is_valid), (3, Some(0), true));
}

#[test]
fn a_row_without_a_sample_of_that_state_is_not_valid() {
    let changing = samples(&[[100.0, 300.0], [300.0, 100.0]]);
    let steady = samples(&[[100.0, 100.0]]);
    let state = State::most_frequent(changing.iter().chain(&steady));
    let (all, condition, is_valid) = counted(&changing, state.as_ref());
    assert_eq!((all.len(), is_valid), (2, false));
    assert_eq!(condition, Condition::Without(Reason::Changing));
}
