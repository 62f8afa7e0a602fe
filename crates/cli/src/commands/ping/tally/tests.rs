//! The summary of successful pings, and of failed ones.

use std::time::Duration;

use clap::Parser;
use dunlin::ErrorCode;

use super::{Outcome, Tally};
use crate::{Command, commands};

/// A tally's summary of these outcomes, as JSON and as text.
fn summary(outcomes: &[Outcome]) -> (serde_json::Value, String) {
    let command = ["dunlin", "ping", "localhost:1", "--flood"];
    let Command::Other(commands::Command::Ping(args)) = crate::Args::parse_from(command).command
    else {
        panic!("the command is not a ping");
    };
    let mut tally = Tally::new(&args, ([127, 0, 0, 1], 1).into());
    for (seq, outcome) in (1..).zip(outcomes) {
        tally.add(seq, outcome).unwrap();
    }
    (tally.object(), tally.text())
}

#[test]
fn times_are_counted_in_buckets_between_1_2_and_5() {
    let answered = |micros| Outcome::Answered(Duration::from_micros(micros));
    let (object, text) = summary(&[answered(3), answered(4), answered(30), answered(900)]);
    let buckets = object["histogram"].as_array().unwrap();
    let counted: Vec<[f64; 3]> = buckets
        .iter()
        .map(|bucket| ["from_us", "to_us", "count"].map(|name| bucket[name].as_f64().unwrap()))
        .collect();
    assert_eq!(counted[0], [2.0, 5.0, 2.0]);
    assert_eq!(counted[3], [20.0, 50.0, 1.0]);
    assert_eq!(counted.last().unwrap(), &[500.0, 1000.0, 1.0]);
    assert_eq!(counted.len(), 8, "those between are empty: {counted:?}");
    assert_eq!(object["us"]["max"], 900.0);
    assert_eq!(object["loss_percent"], 0.0);
    assert!(
        text.contains("4 sent, 4 answered, 0 lost (0.0 % loss)"),
        "{text}"
    );
    assert!(text.contains("min 3.00, mean 234, p50 4.0"), "{text}");
}

/// Some of these times share a step of the inner histogram with times of another bucket.
#[test]
fn a_time_near_an_edge_is_counted_once() {
    let spans = [499_970, 499_999, 500_000, 500_100, 999_900, 1_000_010];
    let answered = spans.map(|ns| Outcome::Answered(Duration::from_nanos(ns)));
    let (object, _) = summary(&answered);
    let buckets = object["histogram"].as_array().unwrap();
    let counts = buckets.iter().map(|bucket| bucket["count"].as_u64());
    assert_eq!(counts.sum::<Option<u64>>(), Some(6), "{buckets:?}");
}

#[test]
fn pings_without_a_right_answer_or_refusal_are_lost() {
    let span = Duration::from_micros(7);
    let (object, text) = summary(&[
        Outcome::Refused(span, ErrorCode::UNKNOWN_TYPE),
        Outcome::Wrong,
        Outcome::Lost("the server has left".to_owned()),
        Outcome::Lost("the server has left".to_owned()),
    ]);
    assert_eq!(object["loss_percent"], 75.0);
    assert_eq!(
        (&object["refused"], &object["lost"]),
        (&1.into(), &2.into())
    );
    assert!(
        text.contains("0 answered, 1 refused, 1 wrong, 2 lost (75.0 % loss)"),
        "{text}"
    );
    let (object, text) = summary(&[Outcome::Interrupted]);
    assert_eq!(
        (&object["sent"], &object["loss_percent"]),
        (&0.into(), &0.0.into())
    );
    assert!(!text.contains("round trip"), "there is none: {text}");
}
