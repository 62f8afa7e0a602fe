//! The property of the endpoint under random steps. The fuzz target goes on where this stops.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn endpoints_keep_their_promises(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        super::endpoint(&bytes);
    }
}
