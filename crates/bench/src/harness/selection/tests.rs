//! Options choose cases, and a choice that leaves no case is refused.

use std::collections::BTreeSet;

use super::*;
use crate::experiments;
use crate::harness::case::Case;

fn params(selection: &Selection, experiment: &str) -> Vec<String> {
    let experiment = experiments::find(experiment).unwrap();
    let cases = experiment.cases(selection).unwrap();
    cases.iter().map(Case::label).collect()
}

#[test]
fn the_option_only_keeps_the_cases_with_the_wanted_values() {
    let selection = Selection {
        only: vec![
            only("batch=3,16").unwrap(),
            only("pattern=symmetric").unwrap(),
        ],
        ..Selection::one(Some(Transport::Shm), Some(8))
    };
    let symmetric =
        |batch| format!("rate shm, batch {batch}, inflight 60, pattern symmetric, size 8");
    let found = params(&selection, "rate");
    assert_eq!(found, [symmetric(3), symmetric(16)]);
    let found = params(&selection, "latency");
    assert_eq!(found, ["latency shm, size 8"], "it has neither parameter");
}

#[test]
fn without_a_choice_there_are_the_usual_sizes() {
    let selection = Selection::one(Some(Transport::Udp), None);
    let sizes = |experiment| -> BTreeSet<String> {
        let labels = params(&selection, experiment);
        let sizes = labels.iter().map(|it| it.rsplit_once("size ").unwrap().1);
        sizes.map(str::to_owned).collect()
    };
    assert_eq!(sizes("latency"), sizes("rate"));
    assert_eq!(sizes("rate").len(), 5);
}

#[test]
fn rates_have_every_batch_at_the_usual_size_and_at_chosen_sizes() {
    let count = |size| {
        let only = vec![only("pattern=one_way").unwrap()];
        let usual = Selection::one(Some(Transport::Shm), size);
        params(&Selection { only, ..usual }, "rate").len()
    };
    assert_eq!((count(None), count(Some(8))), (4 + 4, 4));
}

#[cfg(feature = "full")]
#[test]
fn rates_over_dpdk_are_measured_with_and_without_packing() {
    let selection = Selection {
        only: vec![only("batch=3").unwrap(), only("pattern=one_way").unwrap()],
        ..Selection::one(Some(Transport::Dpdk), Some(32))
    };
    let one = |packing| {
        format!(
            "rate dpdk, batch 3, device memif, inflight 60, packing {packing}, pattern one_way, \
             size 32"
        )
    };
    assert_eq!(params(&selection, "rate"), [one(true), one(false)]);
}

#[test]
fn sizes_that_are_not_filled_word_by_word_are_refused() {
    for text in ["0", "4", "12", "8200", "x", "-8", "65544"] {
        assert!(size(text).is_err(), "{text}");
    }
    assert_eq!((size("8"), size("1000")), (Ok(8), Ok(1000)));
    for text in ["batch", "=3", "batch="] {
        assert!(only(text).is_err(), "{text}");
    }
}
