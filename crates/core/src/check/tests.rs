//! The property of the endpoint under random steps, which the fuzz target goes on with, also under
//! the steps of the committed corpus; and the proof that its checkers see: planted bugs are found.

#![allow(
    clippy::unwrap_used,
    reason = "a corpus that cannot be read is a failure"
)]

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn endpoints_keep_their_promises(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        super::endpoint(&bytes);
    }
}

#[test]
fn the_corpus_keeps_its_promises() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/endpoint");
    let mut inputs = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        super::endpoint(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs > 100, "{inputs} inputs in {corpus}");
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    use crate::config::Config;
    use crate::mutant::Mutant;
    use crate::rng::Rng;

    const INPUTS: usize = 20_000;
    // The simulator finds these. Whoever forges a CR that is right but for its numbers could as
    // well end the call, so the checkers here allow it; and a request that is stuck ends when its
    // response hold has passed or its peer seems to have failed, which they allow too.
    const FOUND_BY_SIMULATOR: [Mutant; 3] = [
        Mutant::FutureCreditAccepted,
        Mutant::BitmapOffByOne,
        Mutant::LostNotResent,
    ];
    let mut missed = Vec::new();
    let all = Mutant::ALL.iter();
    for mutant in all.filter(|mutant| !FOUND_BY_SIMULATOR.contains(mutant)) {
        let mut rng = Rng::new(7);
        let found = (0..INPUTS).find(|_| {
            let len = 800 + (rng.next_u32() % 800) as usize;
            let bytes: Vec<u8> = (0..len).map(|_| rng.next_u32().to_be_bytes()[0]).collect();
            let config = Config {
                mutant: Some(*mutant),
                ..super::host::config()
            };
            std::panic::catch_unwind(|| super::live(&bytes, config)).is_err()
        });
        match found {
            Some(inputs) => println!("{} after {inputs} inputs", mutant.name()),
            None => missed.push(mutant.name()),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
