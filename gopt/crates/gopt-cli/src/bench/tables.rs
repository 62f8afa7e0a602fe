//! The measured tables, filled with random entries, and random keys for them. The key of each query
//! is computed: reading it from a list would cost cache lines.

use std::io;

use gopt_lookups::aho_corasick::Automata;
use gopt_lookups::btree::BTree;
use gopt_lookups::c::InC;
use gopt_lookups::cuckoo::{Cuckoo, SLOTS};
use gopt_lookups::ipv4::Ipv4;
use gopt_lookups::ipv6::Ipv6;
use gopt_lookups::mica::Mica;
use gopt_lookups::pointer_chasing::{Chain, DEPTH};
use gopt_lookups::random::{Random, mix};
use gopt_lookups::trie::Route;

use super::options::Lookup;

/// A use of a table.
pub(super) trait Visit {
    /// Uses a table; `key` makes keys for it.
    fn table<L>(self, table: &L, key: impl Fn(&mut Random) -> L::Key) -> anyhow::Result<()>
    where
        L: InC,
        L::Value: PartialEq;

    /// Uses automata; `sets` has the patterns that each of them finds.
    fn automata(self, automata: &Automata, sets: &[Vec<Vec<u8>>]) -> anyhow::Result<()>;
}

/// For `ipv6`: the routes of each site. A site is a prefix of 48 bits.
const NETWORKS: usize = 16;

/// Automata, as in the paper (§5.1).
const AUTOMATA: usize = 450;

/// Bytes of a pattern.
const PATTERN_BYTES: usize = 16;

/// Bytes of a state or of a group of routes.
const KIB: usize = 1 << 10;

/// Makes the table of a look-up, with about this many bytes, and lets `visit` use it.
///
/// # Errors
/// There is not enough memory; or the error of `visit`.
pub(super) fn make(lookup: Lookup, bytes: usize, visit: impl Visit) -> anyhow::Result<()> {
    match lookup {
        Lookup::PointerChasing => {
            let chain = Chain::new(bytes / 4, DEPTH, &mut Random::new(1))?;
            let cells = chain.len() as u64;
            visit.table(&chain, |random| number(random.below(cells)))
        }
        Lookup::Cuckoo => {
            let (table, keys) = cuckoo(bytes)?;
            visit.table(&table, |random| number(random.below(keys) + 1))
        }
        Lookup::Ipv4 => visit.table(&ipv4(bytes)?, |random| number(random.below(1 << 32))),
        Lookup::Ipv6 => {
            let sites = (bytes / (12 * KIB)).max(1);
            let table = Ipv6::new((0..sites * NETWORKS).map(network))?;
            visit.table(&table, |random| {
                let host = u128::from(random.bits() & 0xFF) << 64;
                network(random.index(sites * NETWORKS)).address ^ host
            })
        }
        Lookup::Mica => {
            let (table, keys) = mica(bytes)?;
            visit.table(&table, |random| random.below(keys))
        }
        Lookup::Btree => {
            // Keys and values take 16 bytes a pair, and inner nodes a seventeenth of the leaves.
            let len = bytes / 17;
            let table = BTree::new((0..len).map(|at| (at as u64 * 3, at as u64)))?;
            visit.table(&table, |random| random.below(len as u64) * 3)
        }
        Lookup::AhoCorasick => {
            let sets = patterns(bytes);
            visit.automata(&Automata::new(&sets)?, &sets)
        }
    }
}

/// A table that is half full, so that most keys are in their first bucket, and some in their
/// second.
fn cuckoo(bytes: usize) -> anyhow::Result<(Cuckoo, u64)> {
    let log2_buckets = (bytes / 64).ilog2();
    let mut table = Cuckoo::new(log2_buckets)?;
    let keys = (1_u64 << log2_buckets) * SLOTS as u64 / 2;
    for key in 1..=keys {
        let inserted = table.insert(number(key), number(key) ^ 1);
        inserted.map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    Ok((table, keys))
}

/// One half of the memory is for the index, a quarter of whose 8-byte slots are full; the other
/// half is for the log.
fn mica(bytes: usize) -> io::Result<(Mica, u64)> {
    let log2_entries = (bytes / 64).ilog2();
    let mut table = Mica::new(log2_entries - 1, log2_entries)?;
    let keys = (1 << log2_entries) - 1;
    for key in 0..keys {
        table.set(key, [key; 3]);
    }
    Ok((table, keys))
}

/// The first level has 64 MiB, which the format fixes. The rest of the memory is for groups of 1
/// KiB, which prefixes of more than 24 bits need.
fn ipv4(bytes: usize) -> io::Result<Ipv4> {
    let mut random = Random::new(2);
    let long = bytes.saturating_sub(64 << 20) / KIB;
    let lens = std::iter::repeat_n(24, bytes / (4 * KIB)).chain(std::iter::repeat_n(28, long));
    let routes = lens.map(|len| Route {
        address: number(random.below(1 << 32)),
        len,
        hop: 7,
    });
    let default = Route {
        address: 0,
        len: 0,
        hop: 1,
    };
    Ipv4::new(routes.chain([default]))
}

/// Route number `at`, to a network of 49 to 64 bits in a site. The sites are random prefixes of 48
/// bits. A site shares none of its four groups with another one; half of the networks have one more
/// group of their own.
fn network(at: usize) -> Route<u128> {
    let site = mix((at / NETWORKS) as u64 + 1) & !0xFFFF;
    let network = mix(at as u64) & 0xFFFF;
    Route {
        address: u128::from(site | network) << 64,
        len: u8::try_from(49 + at % NETWORKS).expect("at most 64"),
        hop: 7,
    }
}

/// The patterns of each automaton. A pattern of 16 bytes makes about 15 states of 1 KiB.
fn patterns(bytes: usize) -> Vec<Vec<Vec<u8>>> {
    let mut random = Random::new(4);
    let count = (bytes / KIB / (PATTERN_BYTES - 1) / AUTOMATA).max(1);
    let mut pattern = || -> Vec<u8> {
        let bytes = (0..PATTERN_BYTES).map(|_| random.bits().to_le_bytes()[0]);
        bytes.collect()
    };
    (0..AUTOMATA)
        .map(|_| (0..count).map(|_| pattern()).collect())
        .collect()
}

fn number(small: u64) -> u32 {
    u32::try_from(small).expect("tables have fewer than 2^32 entries")
}
