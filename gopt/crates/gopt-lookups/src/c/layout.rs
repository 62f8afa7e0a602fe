//! Checks that keys, values, packets and results have the layout of the C sources. `Option`
//! promises no layout for these types, so the checks look at the layout that the compiler chose.
//! With another layout, the crate would not compile.

use std::mem::{offset_of, transmute};

use crate::work::{Handled, Packet};

/// Whether a value that may be absent is laid out as C's `struct found_…`: a word that says whether
/// it is there (0 or 1), then the value.
const fn is_as_in_c() -> bool {
    // SAFETY: both types have the same size, which `transmute` checks. If bytes of a result were
    // not initialised, this would not compile.
    let some = unsafe {
        (
            transmute::<Option<u32>, [u32; 2]>(Some(2)),
            transmute::<Option<u64>, [u64; 2]>(Some(3)),
            transmute::<Option<[u64; 3]>, [u64; 4]>(Some([4, 5, 6])),
        )
    };
    // SAFETY: as above, and the compiler refuses bytes that are not a value of the type.
    let none = unsafe {
        (
            transmute::<[u32; 2], Option<u32>>([0, 2]),
            transmute::<[u64; 2], Option<u64>>([0, 3]),
            transmute::<[u64; 4], Option<[u64; 3]>>([0, 4, 5, 6]),
        )
    };
    matches!(some, ([1, 2], [1, 3], [1, 4, 5, 6])) && matches!(none, (None, None, None))
}

/// Whether packets and results of a handler have the layout of C, too.
const fn packet_is_as_in_c<K>() -> bool {
    let after_words = size_of::<[u64; 8]>();
    offset_of!(Packet<K>, words) == 0 && offset_of!(Packet<K>, key) == after_words
}

const fn handled_is_as_in_c<V>() -> bool {
    offset_of!(Handled<V>, value) == 0
        && offset_of!(Handled<V>, digest) == size_of::<V>().next_multiple_of(8)
}

const _: () = {
    assert!(is_as_in_c());
    assert!(packet_is_as_in_c::<u32>() && size_of::<Packet<u32>>() == 72);
    assert!(packet_is_as_in_c::<u64>() && size_of::<Packet<u64>>() == 72);
    assert!(packet_is_as_in_c::<u128>() && size_of::<Packet<u128>>() == 80);
    assert!(handled_is_as_in_c::<u32>() && size_of::<Handled<u32>>() == 16);
    assert!(handled_is_as_in_c::<Option<u32>>() && size_of::<Handled<Option<u32>>>() == 16);
    assert!(handled_is_as_in_c::<Option<u64>>() && size_of::<Handled<Option<u64>>>() == 24);
    assert!(handled_is_as_in_c::<Option<[u64; 3]>>());
    assert!(size_of::<Handled<Option<[u64; 3]>>>() == 40);
};
