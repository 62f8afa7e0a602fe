//! The tables that are measured, filled with random entries.

use std::io;

use gopt_lookups::aho_corasick::Automata;
use gopt_lookups::btree::BTree;
use gopt_lookups::cuckoo::Cuckoo;
use gopt_lookups::ipv4::Ipv4;
use gopt_lookups::ipv6::Ipv6;
use gopt_lookups::mica::Mica;
use gopt_lookups::pointer_chasing::{Chain, DEPTH};
use gopt_lookups::random::Random;
use gopt_lookups::trie::Route;

use crate::automata::automata_rates;
use crate::measure::both_shapes;

/// A name, and what measures a table of about so many bytes.
type Entry = (&'static str, fn(usize) -> io::Result<()>);

const TABLES: [Entry; 7] = [
    ("pointer-chasing", pointer_chasing),
    ("cuckoo", cuckoo),
    ("mica", mica),
    ("ipv4", ipv4),
    ("ipv6", ipv6),
    ("btree", btree),
    ("aho-corasick", aho_corasick),
];

/// Measures every wanted look-up on tables of about `mib` MiB.
pub(crate) fn run(mib: usize, is_wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    for (name, measure) in TABLES {
        if is_wanted(name) {
            measure(mib << 20)?;
        }
    }
    Ok(())
}

fn pointer_chasing(bytes: usize) -> io::Result<()> {
    let chain = Chain::new(bytes / 4, DEPTH, &mut Random::new(1))?;
    let cells = chain.len() as u64;
    both_shapes("pointer-chasing", &chain, 1024, |random| {
        number(random.below(cells))
    });
    Ok(())
}

fn cuckoo(bytes: usize) -> io::Result<()> {
    let mut table = Cuckoo::new((bytes / 64).ilog2())?;
    // Half full, so that most keys are in their first bucket, some in their second.
    let keys = (bytes / 64).next_power_of_two() as u64 * 4;
    for key in 1..=keys {
        let inserted = table.insert(number(key), 1);
        inserted.map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    both_shapes("cuckoo", &table, 20_000, |random| {
        number(random.below(keys) + 1)
    });
    Ok(())
}

fn mica(bytes: usize) -> io::Result<()> {
    // Half of the memory each for the index, of 8-byte slots that are a quarter full, and the log.
    let log2_entries = (bytes / 64).ilog2();
    let mut table = Mica::new(log2_entries - 1, log2_entries)?;
    let keys = (1 << log2_entries) - 1;
    for key in 0..keys {
        table.set(key, [key; 3]);
    }
    both_shapes("mica", &table, 20_000, |random| random.below(keys));
    Ok(())
}

fn ipv4(bytes: usize) -> io::Result<()> {
    let mut random = Random::new(2);
    let address = |random: &mut Random| number(random.below(1 << 32));
    // The first level has 64 MiB; prefixes of more than 24 bits take 1 KiB each.
    let long = bytes.saturating_sub(64 << 20) / 1024;
    let lens = std::iter::repeat_n(24, 500_000).chain(std::iter::repeat_n(28, long));
    let mut routes: Vec<Route<u32>> = lens
        .map(|len| Route {
            address: address(&mut random),
            len,
            hop: 7,
        })
        .collect();
    routes.push(Route {
        address: 0,
        len: 0,
        hop: 1,
    });
    let table = Ipv4::new(routes)?;
    both_shapes("ipv4", &table, 20_000, address);
    Ok(())
}

fn ipv6(bytes: usize) -> io::Result<()> {
    let mut random = Random::new(3);
    let wide = |random: &mut Random| u128::from(random.bits()) << 64;
    // A random prefix of 48 to 64 bits takes about four groups of 1 KiB.
    let count = bytes / 4096;
    let routes: Vec<Route<u128>> = (0..count)
        .map(|_| {
            let len = u8::try_from(48 + random.below(17)).expect("at most 64");
            Route {
                address: wide(&mut random),
                len,
                hop: 7,
            }
        })
        .collect();
    let table = Ipv6::new(routes.iter().copied())?;
    both_shapes("ipv6", &table, 20_000, |random| {
        routes[random.index(count)].address
    });
    Ok(())
}

fn btree(bytes: usize) -> io::Result<()> {
    // Keys and values take 16 bytes a pair, inner nodes a seventeenth of the leaves.
    let len = bytes / 17;
    let table = BTree::new((0..len).map(|at| (at as u64 * 3, at as u64)))?;
    both_shapes("btree", &table, 20_000, |random| {
        random.below(len as u64) * 3
    });
    Ok(())
}

/// 450 automata as in the paper; packets of 64 to 1500 bytes that follow patterns half of the time.
fn aho_corasick(bytes: usize) -> io::Result<()> {
    let mut random = Random::new(4);
    // A pattern of 16 bytes makes about 15 states of 1 KiB.
    let patterns = (bytes / 1024 / 15 / 450).max(1);
    let text = |random: &mut Random, len: usize| -> Vec<u8> {
        (0..len).map(|_| random.bits().to_le_bytes()[0]).collect()
    };
    let mut set = |_| (0..patterns).map(|_| text(&mut random, 16)).collect();
    let sets: Vec<Vec<Vec<u8>>> = (0..450).map(&mut set).collect();
    let automata = Automata::new(&sets)?;
    println!("aho-corasick: {} states", automata.states());
    automata_rates(&automata, &sets, &mut random);
    Ok(())
}

fn number(small: u64) -> u32 {
    u32::try_from(small).expect("tables have fewer than 2^32 entries")
}
