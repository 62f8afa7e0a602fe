//! The probe side of a hash join, in three forms: one key after the other, interleaved by gopt, and
//! as a ring of states written by hand (AMAC). Prints nanoseconds for each key, as medians of five
//! rounds in which the forms take turns, and `gopt` over `ring`: the share of the ring's rate that
//! gopt reaches.
//!
//! `cargo run --release -p gopt --example hash_join -- 24` makes a table of 2^24 keys, which no
//! cache holds; without an argument the table is small. Each form is a function of its own, so that
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='hash_join::interleaved'`
//! counts the instructions of one form.

use std::hint::black_box;
use std::time::Instant;

const WIDTH: usize = 16;

/// The index that means no entry.
const NONE: u32 = u32::MAX;

struct Row {
    key: u64,
    value: u64,
    next: u32,
}

/// Buckets, each with a chain of entries, one on average.
struct Table {
    heads: Vec<u32>,
    entries: Vec<Row>,
}

impl Table {
    fn new(log2_entries: u32) -> Self {
        let mut table = Self {
            heads: vec![NONE; 1 << log2_entries],
            entries: Vec::with_capacity(1 << log2_entries),
        };
        for (number, value) in (0..1_u32 << log2_entries).zip(0_u64..) {
            let key = value * 3 / 2;
            let bucket = table.bucket(key);
            let next = std::mem::replace(&mut table.heads[bucket], number);
            table.entries.push(Row { key, value, next });
        }
        table
    }

    fn bucket(&self, key: u64) -> usize {
        let mixed = mix(key) & (self.heads.len() as u64 - 1);
        usize::try_from(mixed).expect("it is below a length")
    }

    #[inline(always)]
    fn entry(&self, number: u32) -> Option<&Row> {
        self.entries.get(number as usize)
    }
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits ^ (bits >> 29)
}

#[inline(never)]
fn plain(table: &Table, keys: &[u64]) -> u64 {
    let mut total = 0_u64;
    for &key in keys {
        let mut at = table.heads[table.bucket(key)];
        while let Some(entry) = table.entry(at) {
            if entry.key == key {
                total = total.wrapping_add(entry.value);
            }
            at = entry.next;
        }
    }
    total
}

#[inline(never)]
fn interleaved(table: &Table, keys: &[u64]) -> u64 {
    let mut total = 0_u64;
    let probe = |&key: &u64| async move {
        let mut sum = 0_u64;
        let mut at = *gopt::load(&table.heads[table.bucket(key)]).await;
        while let Some(entry) = table.entry(at) {
            let entry = gopt::load(entry).await;
            if entry.key == key {
                sum = sum.wrapping_add(entry.value);
            }
            at = entry.next;
        }
        sum
    };
    let add = |_, sum| total = total.wrapping_add(sum);
    gopt::Batch::<WIDTH>::new().for_each(keys, probe, add);
    total
}

#[derive(Clone, Copy)]
enum State {
    Head { key: u64, bucket: usize },
    Chain { key: u64, at: u32 },
    Done,
}

#[inline(never)]
fn ring(table: &Table, keys: &[u64]) -> u64 {
    let mut total = 0_u64;
    let mut keys = keys.iter();
    let mut start = || {
        let &key = keys.next()?;
        let bucket = table.bucket(key);
        gopt::prefetch_now(&raw const table.heads[bucket], gopt::T0);
        Some(State::Head { key, bucket })
    };
    let mut states = [State::Done; WIDTH];
    let mut busy = 0;
    for state in &mut states {
        if let Some(started) = start() {
            (*state, busy) = (started, busy + 1);
        }
    }
    let mut turn = 0;
    while busy > 0 {
        let state = &mut states[turn];
        turn = (turn + 1) % WIDTH;
        let (key, next) = match *state {
            State::Head { key, bucket } => (key, table.heads[bucket]),
            State::Chain { key, at } => {
                let entry = &table.entries[at as usize];
                if entry.key == key {
                    total = total.wrapping_add(entry.value);
                }
                (key, entry.next)
            }
            State::Done => continue,
        };
        *state = match table.entry(next) {
            Some(entry) => {
                gopt::prefetch_now(entry, gopt::T0);
                State::Chain { key, at: next }
            }
            None => start().unwrap_or_else(|| {
                busy -= 1;
                State::Done
            }),
        };
    }
    total
}

fn main() {
    let log2_entries = std::env::args().nth(1).map_or(Ok(12), |text| text.parse());
    let log2_entries = log2_entries.expect("the argument is the logarithm of a number of keys");
    assert!((1..=30).contains(&log2_entries), "2^1 to 2^30 keys fit");
    let table = Table::new(log2_entries);
    // Two keys of three are in the table.
    let keys: Vec<u64> = (0..1 << 16)
        .map(|n| mix(n) % (3 << log2_entries >> 1))
        .collect();
    let forms = [plain, interleaved, ring];
    let mut times = [const { Vec::new() }; 3];
    for round in 0..5_u64 {
        let keys: Vec<u64> = keys.iter().map(|key| key ^ round).collect();
        let expected = plain(&table, &keys);
        for (form, times) in forms.iter().zip(&mut times) {
            let begin = Instant::now();
            let total = form(&table, black_box(&keys));
            times.push(begin.elapsed().as_secs_f64() * 1e9 / keys.len() as f64);
            assert_eq!(total, expected, "all forms find the same");
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [plain, gopt, ring] = times.map(median);
    println!("plain {plain:.1} ns, gopt {gopt:.1} ns, ring {ring:.1} ns a key");
    println!("gopt over ring: {:.2}", ring / gopt);
}
