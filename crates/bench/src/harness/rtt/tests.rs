//! The loop times the trips that it is given, and notices wrong answers.

use std::time::Instant;

use super::*;

#[test]
fn quantiles_come_from_the_trips_that_were_made() {
    // Every 64th trip is slow: that changes the p99, but not the median.
    let trip = |counter: u64| {
        let begin = Instant::now();
        let ns = if counter.is_multiple_of(64) {
            200_000
        } else {
            2_000
        };
        while begin.elapsed().as_nanos() < ns {}
        Ok(true)
    };
    let [p50, p99, p999] = measure(Duration::from_millis(100), trip).unwrap();
    assert!((1_900.0..100_000.0).contains(&p50), "{p50}");
    assert!(p99 >= 190_000.0 && p999 >= p99, "{p99} {p999}");
}

#[test]
fn a_wrong_answer_ends_the_measurement() {
    let late = WARM_UP + 3;
    let result = measure(Duration::from_secs(60), |counter| Ok(counter != late));
    let message = result.unwrap_err().to_string();
    assert_eq!(message, format!("the answer to request {late} is wrong"));
}

#[test]
fn counters_are_fresh() {
    let mut last = None;
    let trip = |counter| Ok(last.replace(counter).is_none_or(|last| counter == last + 1));
    measure(Duration::from_millis(5), trip).unwrap();
}
