//! Lent data, until the device has read it.

use super::*;

/// The device sets a flag.
fn finish(flag: *const AtomicU8) {
    // SAFETY: the flags of the test live until its end.
    unsafe { &*flag }.store(1, Ordering::Release);
}

#[test]
fn places_advance_in_order_although_the_device_finishes_in_any_order() {
    let mut lent = Lent::new();
    let given = TxSeq(9);
    assert_eq!(lent.done(given), given);
    let flags: Vec<*const AtomicU8> = [2, 3, 7].map(|place| &raw const *lent.lend(place)).into();
    assert_eq!(lent.done(given), TxSeq(2));
    finish(flags[1]);
    assert_eq!(lent.done(given), TxSeq(2), "the first is still out");
    finish(flags[0]);
    assert_eq!(lent.done(given), TxSeq(7));
    finish(flags[2]);
    assert_eq!(lent.done(given), given);
    assert!(lent.is_empty());
}

#[test]
fn a_flag_is_lent_again_only_after_it_came_back() {
    let mut lent = Lent::new();
    let mut flags = VecDeque::new();
    let mut place = 0;
    for _ in 0..3 * MOST {
        if !lent.has_room() {
            assert_eq!(flags.len(), MOST);
            // All but the oldest came back: there is no room yet.
            flags.iter().skip(1).for_each(|flag| finish(*flag));
            assert!(!lent.has_room());
            finish(flags[0]);
            flags.clear();
            assert!(lent.has_room());
        }
        let flag: *const AtomicU8 = lent.lend(place);
        assert!(!flags.contains(&flag), "two packets have one flag");
        flags.push_back(flag);
        place += 1;
    }
    assert_eq!(lent.done(TxSeq(place)), TxSeq(2 * MOST as u64));
}
