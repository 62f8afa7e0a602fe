//! Compares the slab with a list of all entries that were ever in it.

use proptest::prelude::*;

use super::*;
use crate::handle::CallId;

proptest! {
    #[test]
    fn a_handle_finds_its_own_entry_or_nothing(
        steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..200),
    ) {
        let mut slab: Slab<CallId, usize> = Slab::new();
        let mut all: Vec<(CallId, bool)> = Vec::new();
        for (is_insert, which) in steps {
            if is_insert || all.is_empty() {
                let handle = slab.insert(all.len());
                prop_assert!(all.iter().all(|(other, _)| *other != handle));
                all.push((handle, true));
            } else {
                let thing = which.index(all.len());
                let (handle, is_in) = &mut all[thing];
                let expected = is_in.then_some(thing);
                *is_in = false;
                prop_assert_eq!(slab.remove(*handle), expected);
            }
            let inside = all.iter().filter(|(_, is_in)| *is_in).count();
            prop_assert_eq!(slab.len(), inside);
            prop_assert_eq!(slab.handles().count(), inside);
            for (thing, (handle, is_in)) in all.iter().enumerate() {
                let expected = is_in.then_some(&thing).copied();
                prop_assert_eq!(slab.get(*handle).copied(), expected);
                prop_assert_eq!(slab.get_mut(*handle).copied(), expected);
            }
        }
    }
}
