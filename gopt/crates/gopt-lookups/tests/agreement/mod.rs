//! The property of every table: at any width, its forms give the answers of an oracle. That
//! includes the forms in C, if the table has them.

#![allow(dead_code, reason = "not every table exists in C")]

use gopt::Batch;
use gopt_lookups::c::{CForm, InC, WIDTHS};
use gopt_lookups::random::Random;
use gopt_lookups::work::{Handled, Handler, Packet, Tight};
use gopt_lookups::{Lookup, forms};

/// Looks `keys` up in every form and compares each value with the oracle's.
pub(crate) fn check<L>(table: &L, keys: &[L::Key], oracle: impl Fn(L::Key) -> L::Value)
where
    L: Lookup,
    L::Value: PartialEq + std::fmt::Debug,
{
    let expected: Vec<_> = keys.iter().map(|&key| oracle(key)).collect();
    let Some(&nothing) = expected.first() else {
        return;
    };
    // Each form starts with fresh places, so it cannot pass with values that another form wrote.
    let wrong = |run: &dyn Fn(&mut [L::Value])| {
        let mut out = vec![nothing; keys.len()];
        out.reverse();
        run(&mut out);
        out
    };
    assert_eq!(
        wrong(&|out| forms::plain(table, &Tight, keys, out)),
        expected,
        "plain"
    );
    for width in [1, 2, 3, 8, 16, 33, 64] {
        let batch = Batch::<64>::with_width(width).expect("all are at most 64");
        let found = wrong(&|out| forms::gopt(batch, table, &Tight, keys, out));
        assert_eq!(found, expected, "gopt, width {width}");
        let found = wrong(&|out| forms::hand(width, table, &Tight, keys, out));
        assert_eq!(found, expected, "hand, width {width}");
    }
    check_handler(table, keys, &expected);
}

/// Like [`check`], for a table that C reads as well.
pub(crate) fn check_with_c<L>(table: &L, keys: &[L::Key], oracle: impl Fn(L::Key) -> L::Value)
where
    L: InC,
    L::Value: PartialEq + std::fmt::Debug,
{
    check(table, keys, oracle);
    let packets = packets(keys);
    let Some(&nothing) = keys.first() else {
        return;
    };
    let nothing = table.find(nothing);
    let empty = Handled {
        value: nothing,
        digest: 0,
    };
    let mut values = vec![nothing; keys.len()];
    let mut handled = vec![empty; keys.len()];
    forms::plain(table, &Tight, keys, &mut values);
    forms::plain(table, &Handler, &packets, &mut handled);
    for form in [CForm::Plain, CForm::Gopt, CForm::Hand] {
        for width in WIDTHS {
            // Lengths that are not all multiples of the width, and not all larger than it.
            for len in [1, 37, keys.len()] {
                let len = len.min(keys.len());
                let mut found = vec![nothing; len];
                table.tight_in_c(form, width, &keys[..len], &mut found);
                assert_eq!(found, values[..len], "{form:?} in C, width {width}");
                let mut found = vec![empty; len];
                table.handler_in_c(form, width, &packets[..len], &mut found);
                assert_eq!(found, handled[..len], "{form:?} in C, width {width}");
            }
        }
    }
}

/// Packets with these keys. All their words are different.
fn packets<K: Copy>(keys: &[K]) -> Vec<Packet<K>> {
    let mut random = Random::new(7);
    let mut packet = |&key| Packet {
        words: std::array::from_fn(|_| random.bits()),
        key,
    };
    keys.iter().map(&mut packet).collect()
}

/// Like [`check`], with the work of a handler around each look-up.
fn check_handler<L>(table: &L, keys: &[L::Key], expected: &[L::Value])
where
    L: Lookup,
    L::Value: PartialEq + std::fmt::Debug,
{
    let packets = packets(keys);
    let empty = Handled {
        value: expected[0],
        digest: 0,
    };
    let mut plain = vec![empty; keys.len()];
    let mut gopt = plain.clone();
    let mut hand = plain.clone();
    forms::plain(table, &Handler, &packets, &mut plain);
    forms::gopt(Batch::<16>::new(), table, &Handler, &packets, &mut gopt);
    forms::hand(16, table, &Handler, &packets, &mut hand);
    assert!(
        plain
            .iter()
            .map(|out| out.value)
            .eq(expected.iter().copied())
    );
    assert!(plain.iter().all(|out| out.digest != 0));
    assert_eq!(plain, gopt);
    assert_eq!(plain, hand);
}
