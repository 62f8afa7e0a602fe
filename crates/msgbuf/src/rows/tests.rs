//! The array, compared with a `Vec`, and its use of memory.

use std::rc::Rc;

use proptest::prelude::*;

use super::{Rows, STEP};

/// An entry that fills a cache line. The tests count the entries that are alive.
#[derive(Debug)]
#[repr(align(64))]
struct CountedEntry(
    u64,
    #[expect(dead_code, reason = "the reference count is used")] Rc<()>,
);

#[test]
fn entries_keep_their_indexes_while_the_array_grows_and_shrinks() {
    let alive = Rc::new(());
    let mut rows = Rows::new();
    for round in [3000, 700, 1200_u64] {
        for value in rows.len() as u64..round {
            rows.push(CountedEntry(value, Rc::clone(&alive)));
        }
        rows.truncate(rows.len() / 2);
        assert_eq!(Rc::strong_count(&alive), 1 + rows.len());
        let right = rows.iter().zip(0..).all(|(entry, value)| entry.0 == value);
        assert!(right && rows.as_ptr().addr().is_multiple_of(64));
    }
    drop(rows);
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn an_array_has_little_more_room_than_it_needs() {
    let mut rows = Rows::new();
    assert_eq!(rows.capacity(), 0);
    let room = |rows: &Rows<[u64; 16]>| (rows.capacity() - rows.len()) * 128;
    for entry in 0..20_000 {
        rows.push([entry; 16]);
        let used = rows.len() * 128;
        assert!(room(&rows) <= STEP.max(used / 8) + 4096, "{entry}");
    }
    rows.truncate(10);
    assert!(room(&rows) <= STEP + 4096, "a shorter array frees memory");
    assert_eq!(rows[9], [9; 16]);
}

/// Resident bytes of this process.
#[cfg(all(target_os = "linux", not(miri)))]
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_shorter_array_frees_memory() {
    let mut rows = Rows::new();
    for entry in 0..500_000_u64 {
        rows.push([entry; 16]);
    }
    let full = resident();
    rows.truncate(1);
    let freed = full.saturating_sub(resident());
    assert!(freed > 40 << 20, "{freed} of 64 MB");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]
    #[test]
    fn rows_act_like_a_vec(steps in prop::collection::vec((any::<bool>(), 0_usize..900), 1..20)) {
        let (mut rows, mut model) = (Rows::new(), Vec::new());
        for (grows, count) in steps {
            if grows {
                for _ in 0..count {
                    let entry = Box::new(model.len());
                    rows.push(entry.clone());
                    model.push(entry);
                }
            } else {
                rows.truncate(count);
                model.truncate(count);
            }
            prop_assert_eq!(&*rows, &*model);
        }
    }
}
