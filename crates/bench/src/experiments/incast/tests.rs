//! The experiments measure the scenarios that their descriptions name.

use super::{DEGREES, METRICS, PARTNERS, SCHEMES, background_cases, cases, values};
use crate::harness::selection::Selection;
use dunlin_scenario::{Done, Source};

#[test]
fn every_case_has_its_scenario() {
    assert_eq!(cases().len(), DEGREES.len() * SCHEMES.len());
    assert_eq!(background_cases().len(), PARTNERS.len() * SCHEMES.len());
    let cluster = crate::experiments::find("cluster").unwrap();
    assert_eq!(cluster.cases(&Selection::default()).unwrap().len(), 4);
}

#[test]
fn a_value_belongs_to_each_metric() {
    let (name, text) = super::SCENARIO;
    let mut source = Source::parse(name.to_owned(), text.to_owned()).unwrap();
    for set in [
        "network.hosts=3",
        "endpoint.cc=none",
        "load.0.spread_us=10",
        "warm_up_ms=0.5",
        "end_ms=1.0",
    ] {
        source.set(set).unwrap();
    }
    let variant = source.variants().unwrap().pop().unwrap();
    let done: Done = dunlin_scenario::run(variant, None).unwrap();
    let values = values(&done);
    assert_eq!(values.len(), METRICS.len());
    assert!((22.0..23.5).contains(&values[0]), "{values:?}");
}
