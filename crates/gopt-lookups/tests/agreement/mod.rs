//! What every table must satisfy: its three forms give what an oracle gives, at any width.

use gopt::Batch;
use gopt_lookups::work::{Handled, Handler, Packet, Tight};
use gopt_lookups::{Lookup, forms};

/// Looks `keys` up in every form and compares each value with what `oracle` says.
pub(crate) fn check<L>(table: &L, keys: &[L::Key], oracle: impl Fn(L::Key) -> L::Value)
where
    L: Lookup,
    L::Value: PartialEq + std::fmt::Debug,
{
    let expected: Vec<_> = keys.iter().map(|&key| oracle(key)).collect();
    let Some(&nothing) = expected.first() else {
        return;
    };
    // Each form starts from values that the others did not write.
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

/// The same among other work.
fn check_handler<L>(table: &L, keys: &[L::Key], expected: &[L::Value])
where
    L: Lookup,
    L::Value: PartialEq + std::fmt::Debug,
{
    let packet = |(at, &key): (usize, &L::Key)| Packet {
        words: [at as u64; 8],
        key,
    };
    let packets: Vec<_> = keys.iter().enumerate().map(packet).collect();
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
    assert!(plain.iter().skip(1).all(|out| out.digest != 0));
    assert_eq!(plain, gopt);
    assert_eq!(plain, hand);
}
