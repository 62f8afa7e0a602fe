//! The endpoint keeps its promises under random steps, as in the fuzz target, and under the steps
//! of the committed corpus. The checkers find planted bugs, which proves that they work.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::Variant;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 5000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn endpoints_keep_their_promises(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        super::endpoint(&bytes);
    }
}

// A case takes eight times as long as a case above, and a planted difference must be found by 500
// inputs (see below).
proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn variants_do_not_differ(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        super::variants(&bytes);
    }
}

/// The committed inputs of the fuzz target.
fn corpus() -> Vec<Vec<u8>> {
    let inputs = crate::corpus::inputs("endpoint");
    assert!(inputs.len() > 100, "{} inputs", inputs.len());
    inputs
}

#[test]
fn the_corpus_keeps_its_promises() {
    corpus().iter().for_each(|bytes| super::endpoint(bytes));
}

#[test]
fn variants_do_not_differ_in_the_corpus() {
    corpus().iter().for_each(|bytes| super::variants(bytes));
}

/// Inputs of random steps, always the same.
fn random_inputs(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut rng = dunlin_core::Rng::new(7);
    (0..count).map(move |_| {
        let len = 800 + (rng.next_u32() % 800) as usize;
        (0..len).map(|_| rng.next_u32().to_be_bytes()[0]).collect()
    })
}

#[test]
fn a_variant_that_is_a_nanosecond_slower_differs() {
    let mut pair = [Variant::usual(), Variant::usual()];
    pair[1].config.ack_delay += dunlin_core::Nanos(1);
    let found = random_inputs(100).find_map(|bytes| super::compare(&bytes, &pair));
    let difference = found.unwrap();
    assert!(difference.contains("wake-up: "), "{difference}");
}

/// The comparison finds and names each difference that no checker finds.
#[cfg(feature = "mutants")]
#[test]
fn every_planted_difference_is_found_and_named() {
    use dunlin_core::mutant::Mutant;

    const INPUTS: usize = 500;
    let expected = [
        (Mutant::OneLater, "wake-up: "),
        (Mutant::CountedTwice, "stalls: "),
        (Mutant::EndingsReversed, "ends call"),
        (Mutant::OtherByte, "flags: Flags(2)"),
        (Mutant::SpareBuffer, "pool msgbufs: "),
        (Mutant::PlainThoughPaced, ""),
        (Mutant::LaneKept, ""),
        (Mutant::MeasuredLonger, "call: "),
        (Mutant::ResidenceIgnored, "rtt_samples: "),
        (Mutant::NotReported, "is given up"),
    ];
    assert_eq!(expected.map(|(mutant, _)| mutant), Mutant::DIFFERENCES);
    for (mutant, what) in expected {
        // The endpoint's own checks are off, because they would find some of the differences before
        // the comparison does.
        let mut pair = [Variant::usual(), Variant::usual()];
        for variant in &mut pair {
            variant.config.check = dunlin_core::Check::Never;
        }
        pair[1].config.mutant = Some(mutant);
        let found = random_inputs(INPUTS).find_map(|bytes| super::compare(&bytes, &pair));
        let difference = found.unwrap_or_else(|| panic!("{} is not found", mutant.name()));
        let (_, different) = difference.split_once("  first: ").unwrap();
        assert!(different.contains(what), "{}: {difference}", mutant.name());
    }
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    use dunlin_core::Rng;
    use dunlin_core::mutant::Mutant;

    const INPUTS: usize = 20_000;
    // Mutants that only the simulator finds. The checkers here allow the effects of a forged CR in
    // which only the numbers are wrong, because its sender could also have ended the call. They
    // also allow a stuck request to end when its response hold has passed or its peer seems to have
    // failed.
    const FOUND_BY_SIMULATOR: [Mutant; 5] = [
        // No host here stays in a handler long enough for the control plane to notice.
        Mutant::AbsenceIsFailure,
        // No host here remembers the handles of requests that are over.
        Mutant::GenerationReused,
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
            let mut planted = Variant::usual();
            planted.config.mutant = Some(*mutant);
            std::panic::catch_unwind(|| super::live(&bytes, &planted, &super::Recorder::default()))
                .is_err()
        });
        match found {
            Some(inputs) => println!("{} after {inputs} inputs", mutant.name()),
            None => missed.push(mutant.name()),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// A forger that knows the token claims a wrong length for a large response. The client then drops
/// the real packets because of their size, but because they keep coming, the session is never
/// silent. The call ends when the other host reports that it answered the request long ago.
#[test]
fn a_call_that_a_forger_hangs_ends() {
    let mut bytes = vec![0x60, 0x00, 0x20, 0xf4, 0x41, 0x50, 0x96];
    bytes.extend([0; 6]);
    bytes.extend([
        0xc0, 0, 0, 0, 0x27, 0xac, 0x30, 0, 0x90, 0x02, 0x20, 0, 0, 0, 0xb8, 0x6a,
    ]);
    bytes.extend([0; 42]);
    bytes.extend([0xf6, 0x31, 0x05, 0xf2, 0x00, 0x6c, 0x01, 0x00, 0x00]);
    super::endpoint(&bytes);
}
