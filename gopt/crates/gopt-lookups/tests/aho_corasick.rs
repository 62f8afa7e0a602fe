//! Compares `plain` and `batch`, in Rust and in C, with the crate `aho-corasick`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use aho_corasick::AhoCorasick;
use gopt_lookups::aho_corasick::{Automata, Match, Order, Packet};
use gopt_lookups::c::OrderInC;
use gopt_lookups::random::Random;

/// Strings over a small alphabet, so that they match often and overlap.
fn text(random: &mut Random, longest: u64, letters: u64) -> Vec<u8> {
    let len = random.below(longest) + 1;
    let mut letter = |_| b'a' + u8::try_from(random.below(letters)).expect("a letter");
    (0..len).map(&mut letter).collect()
}

fn oracle(sets: &[Vec<Vec<u8>>], packets: &[Packet<'_>]) -> Vec<Match> {
    let built: Vec<_> = sets
        .iter()
        .map(|set| AhoCorasick::new(set).expect("patterns fit"))
        .collect();
    let mut matches = Vec::new();
    for (packet, given) in packets.iter().enumerate() {
        for found in built[given.automaton].find_overlapping_iter(given.payload) {
            let (end, pattern) = (found.end(), found.pattern().as_u32());
            matches.push(Match {
                packet,
                end,
                pattern,
            });
        }
    }
    matches.sort_unstable();
    matches
}

#[test]
fn both_forms_find_what_the_library_finds() {
    let mut random = Random::new(9);
    let mut set = |patterns| (0..patterns).map(|_| text(&mut random, 6, 3)).collect();
    let sets: Vec<Vec<Vec<u8>>> = [1, 5, 40, 0, 13].into_iter().map(&mut set).collect();
    let payloads: Vec<Vec<u8>> = (0..300).map(|_| text(&mut random, 200, 4)).collect();
    let mut packets: Vec<Packet<'_>> = payloads
        .iter()
        .map(|payload| Packet {
            automaton: random.index(5),
            payload,
        })
        .collect();
    packets.push(Packet {
        automaton: 2,
        payload: &[],
    });
    let expected = oracle(&sets, &packets);
    assert!(expected.len() > 1000);

    let automata = Automata::new(&sets).unwrap();
    let mut found = Vec::new();
    automata.plain(&packets, |one| found.push(one));
    found.sort_unstable();
    assert_eq!(found, expected);
    let mut order = Order::default();
    for width in [0, 1, 2, 8, 16, 64, usize::MAX] {
        found.clear();
        automata.batch(width, &mut order, &packets, |one| found.push(one));
        let in_order = |pair: &[Match]| pair[0].packet != pair[1].packet || pair[0] <= pair[1];
        found.sort_by_key(|one| one.packet);
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0].end <= pair[1].end || in_order(pair))
        );
        found.sort_unstable();
        assert_eq!(found, expected, "width {width}");
    }
    check_in_c(&automata, &packets, &expected);
}

fn check_in_c(automata: &Automata, packets: &[Packet<'_>], expected: &[Match]) {
    let mut order = OrderInC::default();
    let mut plain = Vec::new();
    automata.plain(packets, |one| plain.push(one));
    let mut found = Vec::new();
    automata.plain_in_c(&mut order, packets, |one| found.push(one));
    assert_eq!(found, plain, "plain in C");
    for width in [0, 1, 2, 8, 16, 64, usize::MAX] {
        let (mut in_rust, mut found) = (Vec::new(), Vec::new());
        automata.batch(width, &mut Order::default(), packets, |one| {
            in_rust.push(one)
        });
        automata.batch_in_c(width, &mut order, packets, |one| found.push(one));
        assert_eq!(found, in_rust, "batch in C, width {width}");
        found.sort_unstable();
        assert_eq!(found, expected, "batch in C, width {width}");
    }
}

#[test]
fn a_panic_passes_through_c() {
    let automata = Automata::new(&[vec!["a"]]).unwrap();
    let packets = [Packet {
        automaton: 0,
        payload: b"aaa",
    }];
    let mut seen = 0;
    let run = AssertUnwindSafe(|| {
        automata.plain_in_c(&mut OrderInC::default(), &packets, |_| {
            seen += 1;
            assert!(seen < 2, "the second match");
        });
    });
    let said = catch_unwind(run).expect_err("it panics");
    assert_eq!(said.downcast_ref(), Some(&"the second match"));
    assert_eq!(seen, 2);
}

#[test]
fn packets_of_no_automaton_match_nothing() {
    let automata = Automata::new(&[vec!["a"]]).unwrap();
    let packets = [
        Packet {
            automaton: 1,
            payload: b"a",
        },
        Packet {
            automaton: 0,
            payload: b"a",
        },
    ];
    let expected = [Match {
        packet: 1,
        end: 1,
        pattern: 0,
    }];
    let mut found = Vec::new();
    automata.plain(&packets, |one| found.push(one));
    assert_eq!(found, expected);
    found.clear();
    automata.batch(8, &mut Order::default(), &packets, |one| found.push(one));
    assert_eq!(found, expected);
    check_in_c(&automata, &packets, &expected);
    automata.batch(8, &mut Order::default(), &[], |_| {
        panic!("a match without packets")
    });
    automata.batch_in_c(8, &mut OrderInC::default(), &[], |_| {
        panic!("a match without packets")
    });
}

#[test]
fn empty_patterns_are_refused() {
    assert!(Automata::new(&[vec!["a", ""]]).is_err());
    let none: [Vec<&str>; 0] = [];
    assert_eq!(Automata::new(&none).unwrap().states(), 0);
}
