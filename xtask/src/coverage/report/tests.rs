//! The figures are computed from the export, and missed places lower them.

use std::path::Path;

use serde_json::{Value, json};

use super::{Report, Share};

const FILE: &str = "crates/core/src/packet/receive.rs";

/// The counts of a function with one condition and two regions.
fn function(condition: [u64; 2], regions: [u64; 2]) -> Value {
    let [first, second] = regions;
    let [yes, no] = condition;
    json!({
        "filenames": [format!("/house/{FILE}"), "/elsewhere/lib.rs"],
        "regions": [
            [1, 1, 1, 9, first, 0, 0, 0],
            [2, 1, 2, 9, second, 0, 0, 0],
            [3, 1, 3, 9, 0, 1, 0, 0],
            [4, 1, 4, 9, 0, 0, 0, 3],
        ],
        "branches": [[5, 1, 5, 9, yes, no, 0, 0, 4]],
    })
}

fn report(functions: &[Value]) -> anyhow::Result<Report> {
    let export = json!({"data": [{"functions": functions}]});
    Report::read(&export, Path::new("/house"), &[FILE])
}

#[test]
fn a_place_in_several_copies_counts_once_and_is_reached_by_any_of_them() {
    let report = report(&[function([3, 0], [1, 0]), function([0, 0], [0, 0])]).unwrap();
    let half = Share { reached: 1, all: 2 };
    assert_eq!((report.outcomes(), report.regions()), (half, half));
    assert!(!report.is_enough(0.95) && report.is_enough(0.5));
    let text = report.to_string();
    assert!(text.contains("receive.rs:5:1: never false"), "{text}");
    assert!(text.contains("receive.rs:2:1: never reached"), "{text}");
    assert!(!text.contains("never true"), "{text}");
}

#[test]
fn both_figures_must_be_enough() {
    let outcomes_missing = report(&[function([1, 0], [1, 1])]).unwrap();
    assert!(!outcomes_missing.is_enough(0.95));
    let regions_missing = report(&[function([1, 1], [1, 0])]).unwrap();
    assert!(!regions_missing.is_enough(0.95));
    let all = report(&[function([1, 0], [1, 0]), function([0, 1], [0, 1])]).unwrap();
    assert!(all.is_enough(1.0));
}

#[test]
fn a_file_without_counts_is_an_error() {
    let error = report(&[]).unwrap_err().to_string();
    assert!(error.contains(FILE), "{error}");
    let mut strange = function([1, 1], [1, 1]);
    strange["regions"][0] = json!([1, 2]);
    assert!(report(&[strange]).is_err());
}
