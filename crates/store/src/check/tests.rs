//! Runs of random operations.

use proptest::prelude::*;

use super::driver::Driver;
use super::operation::{Condition, Content, Operation, operation};
use crate::{Config, Mode, Seed, Verb};

pub(super) fn config(mode: Mode) -> Config {
    Config {
        mode,
        seed: Seed::new([3, 5]),
        first_version: u64::MAX - 300,
    }
}

fn check(mode: Mode, memory: usize, operations: &[Operation]) -> Result<(), TestCaseError> {
    let mut driver = Driver::new(memory, config(mode));
    driver.run(operations).map_err(TestCaseError::fail)
}

/// Operations on few keys, so that many concern the same key, or on many keys, which fill the
/// memory.
pub(super) fn operations(longest: usize) -> impl Strategy<Value = Vec<Operation>> {
    prop_oneof![Just(20_u16), Just(400), Just(4000)]
        .prop_flat_map(move |keys| proptest::collection::vec(operation(keys, longest), 1..1500))
}

fn set(key: u16) -> Operation {
    Operation::Write {
        key,
        verb: Verb::Set,
        content: Content::Bytes { len: 8, from: 1 },
        flags: 0,
        lasts: None,
        condition: Condition::None,
        stale_if_older: false,
        is_explicit: false,
    }
}

/// The index grows faster than the scan goes on.
#[test]
fn a_scan_sees_the_items_that_stay_although_the_index_grows() {
    let mut operations: Vec<Operation> = (0..400).map(set).collect();
    for key in 400..1000 {
        operations.push(set(key));
        if key % 8 == 0 {
            operations.push(Operation::ScanStep(1));
        }
    }
    // The scan comes to its end.
    operations.extend((0..20).map(|_| Operation::ScanStep(20)));
    check(Mode::Store, 256 << 10, &operations).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_small_cache_is_like_its_model(operations in operations(3000)) {
        check(Mode::Cache, 64 << 10, &operations)?;
    }

    #[test]
    fn a_cache_is_like_its_model(operations in operations(100_000)) {
        check(Mode::Cache, 1 << 20, &operations)?;
    }

    #[test]
    fn a_small_store_is_like_its_model(operations in operations(30_000)) {
        check(Mode::Store, 256 << 10, &operations)?;
    }

    #[test]
    fn a_store_is_like_its_model(operations in operations(300_000)) {
        check(Mode::Store, 8 << 20, &operations)?;
    }
}
