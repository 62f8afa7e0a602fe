//! Random operations, compared with the model, must find each planted bug.

use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestRng, TestRunner};

use super::driver::Driver;
use super::tests::{config, operations};
use crate::Mode;
use crate::mutant::Mutant;

/// The most runs in which a planted bug must fail.
const RUNS: u32 = 100;

/// Whether any of the runs with a fixed seed differs from the model.
fn is_found(mutant: Option<Mutant>, mode: Mode, memory: usize, longest: usize) -> bool {
    let options = RunnerConfig {
        cases: RUNS,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..RunnerConfig::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(options, random);
    let run = runner.run(&operations(longest), |operations| {
        let mut driver = Driver::new(memory, config(mode));
        if let Some(mutant) = mutant {
            driver.table.plant(mutant);
        }
        let result = driver.run(&operations);
        result.map_err(proptest::test_runner::TestCaseError::fail)
    });
    run.is_err()
}

fn is_found_anywhere(mutant: Option<Mutant>) -> bool {
    is_found(mutant, Mode::Cache, 64 << 10, 3000)
        || is_found(mutant, Mode::Store, 256 << 10, 30_000)
        || is_found(mutant, Mode::Cache, 1 << 20, 100_000)
}

#[test]
fn every_planted_bug_is_found_and_a_table_without_bugs_passes() {
    assert!(!is_found_anywhere(None));
    let unseen: Vec<Mutant> = Mutant::ALL
        .into_iter()
        .filter(|mutant| !is_found_anywhere(Some(*mutant)))
        .collect();
    assert!(unseen.is_empty(), "{unseen:?} were not found");
}
