//! Real threads on one tree: every key behaves like a register, and scans keep their promises.
//!
//! Each key has one writer. The writer puts numbers that increase by one, and deletes the item
//! before each number that is a multiple of eight. It publishes the beginning and the end of each
//! write. So a reader knows which states a linearizable register may show: none from before the
//! last write that had ended when the read began, and none of a write that had not begun when the
//! read ended. For a register with one writer, linearizability requires only this, and the order of
//! each thread's reads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dunlin_index::{Direction, Index, Range, Start};

const KEYS: u64 = 64;
const WRITERS: u64 = 2;
const READERS: usize = 2;
/// Keys that never change, more than a scan reads at once.
const FIXED: u64 = 3000;

/// The state of a key, as its writer publishes it: twice the number of the last write that has
/// ended, plus one while the next write is in progress.
struct Register(AtomicU64);

/// How long the keys are. The index has a tree for keys of eight bytes, one for keys of more than
/// 22 bytes, and one for all others. Only keys in a tree in which others come and go can show that
/// its scans keep their promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Words,
    Others,
    Long,
    Mixed,
}

const SHAPES: [Shape; 4] = [Shape::Words, Shape::Others, Shape::Long, Shape::Mixed];

/// The beginning of long keys: longer than the part of a key that is in a node of the tree.
const BEGINNING: &[u8] = b"the beginning of a key";

/// Keys begin with words that differ, long ones after [`BEGINNING`]. A word that is a multiple of
/// this is in a key that stays. The words between two of these are in keys that come and go, so
/// that splits and removals of nodes affect both kinds.
const GAP: u64 = 8;

impl Shape {
    fn key(self, word: u64) -> Vec<u8> {
        let end: &[u8] = match self {
            Self::Words => b"",
            Self::Long => return [BEGINNING, &word.to_be_bytes()[..]].concat(),
            Self::Mixed if word / GAP % 2 == word % GAP % 2 => b"",
            Self::Mixed if word.is_multiple_of(3) => b"~ more than 22 bytes",
            Self::Others | Self::Mixed => b"~",
        };
        [&word.to_be_bytes()[..], end].concat()
    }

    fn fixed(self, number: u64) -> Vec<u8> {
        self.key(number * GAP)
    }

    fn register(self, number: u64) -> Vec<u8> {
        self.key(number * FIXED / KEYS * GAP + 1)
    }
}

fn word(key: &[u8]) -> u64 {
    let key = key.strip_prefix(BEGINNING).unwrap_or(key);
    u64::from_be_bytes(*key.first_chunk().unwrap())
}

/// The number of a key that stays; `None` for other keys.
fn staying(key: &[u8]) -> Option<u64> {
    let word = word(key);
    word.is_multiple_of(GAP).then_some(word / GAP)
}

/// Whether write `step` deletes the item.
const fn deletes(step: u64) -> bool {
    step % 8 == 7
}

fn write(index: &Index, shape: Shape, registers: &[Register], own: u64, is_over: &AtomicBool) {
    let mut step = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        step += 1;
        for number in (0..KEYS).filter(|number| number % WRITERS == own) {
            let state = &registers[usize::try_from(number).unwrap()].0;
            state.store(2 * step - 1, Ordering::SeqCst);
            match deletes(step) {
                true => {
                    index.delete(&shape.register(number));
                }
                false => {
                    index.put(&shape.register(number), &value(number, step));
                }
            }
            state.store(2 * step, Ordering::SeqCst);
        }
    }
}

/// Whether a read may have returned this value, if the register's state was `before` when the read
/// began and `after` when it ended.
fn is_possible(before: u64, after: u64, seen: Option<u64>) -> bool {
    let (first, last) = (before / 2, after.div_ceil(2));
    let shows = |step: u64| match seen {
        Some(value) => value == step && !deletes(step),
        None => step == 0 || deletes(step),
    };
    (first..=last).any(shows)
}

/// The value that a write leaves. The value of every third key is too long for the tree.
fn value(number: u64, step: u64) -> Vec<u8> {
    match number % 3 {
        0 => step.to_le_bytes().repeat(5),
        _ => step.to_le_bytes().to_vec(),
    }
}

fn number(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let is_whole = rest.is_empty() && words.iter().all(|word| *word == words[0]);
    assert!(is_whole, "a value of two writes: {value:?}");
    u64::from_le_bytes(words[0])
}

/// Reads until the time is over. Returns the number of reads, or the first error found.
fn read(
    index: &Index,
    shape: Shape,
    registers: &[Register],
    is_over: &AtomicBool,
) -> Result<u64, String> {
    let mut reads = 0;
    while !is_over.load(Ordering::Relaxed) {
        for at in 0..KEYS {
            let state = &registers[usize::try_from(at).unwrap()].0;
            let before = state.load(Ordering::SeqCst);
            let seen = index.get(&shape.register(at), number);
            let after = state.load(Ordering::SeqCst);
            if !is_possible(before, after, seen) {
                return Err(format!(
                    "key {at} shows {seen:?} between {before} and {after}"
                ));
            }
            reads += 1;
        }
        for direction in [Direction::Forward, Direction::Backward] {
            scan(index, shape, registers, direction)?;
        }
    }
    Ok(reads)
}

fn scan(
    index: &Index,
    shape: Shape,
    registers: &[Register],
    direction: Direction,
) -> Result<(), String> {
    let states = |registers: &[Register]| -> Vec<u64> {
        let all = registers.iter();
        all.map(|it| it.0.load(Ordering::SeqCst)).collect()
    };
    let before = states(registers);
    let (mut items, mut last) = (Vec::new(), None::<Vec<u8>>);
    let mut wrong = None;
    index.scan(Range::ALL, direction, |key, value| {
        let is_next = last.as_ref().is_none_or(|last| match direction {
            Direction::Forward => key > &last[..],
            Direction::Backward => key < &last[..],
        });
        if !is_next {
            wrong = Some(format!("{key:?} after {last:?}"));
        }
        last = Some(key.to_vec());
        items.push((key.to_vec(), number(value)));
        true
    });
    let after = states(registers);
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let stay = items.iter().filter_map(|(key, _)| staying(key)).count();
    if stay != usize::try_from(FIXED).unwrap() {
        return Err(format!("{stay} of {FIXED} keys that stay"));
    }
    for (key, value) in &items {
        let is_right = match staying(key) {
            Some(number) => *key == shape.fixed(number) && *value == number,
            None => (0..KEYS).any(|at| {
                let register = usize::try_from(at).unwrap();
                *key == shape.register(at)
                    && is_possible(before[register], after[register], Some(*value))
            }),
        };
        if !is_right {
            return Err(format!("{key:?} with {value} was never there"));
        }
    }
    Ok(())
}

/// Runs the threads for a while. Returns the first error that a reader found.
fn run(index: &Index, shape: Shape, span: Duration) -> Result<u64, String> {
    for number in 0..FIXED {
        index.put(&shape.fixed(number), &number.to_le_bytes());
    }
    let registers: Vec<Register> = (0..KEYS).map(|_| Register(AtomicU64::new(0))).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (registers, is_over) = (&registers[..], &is_over);
        for own in 0..WRITERS {
            scope.spawn(move || write(index, shape, registers, own, is_over));
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| scope.spawn(move || read(index, shape, registers, is_over)))
            .collect();
        let begin = Instant::now();
        while begin.elapsed() < span && readers.iter().all(|it| !it.is_finished()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        let mut reads = 0;
        for reader in readers {
            reads += reader.join().unwrap()?;
        }
        Ok(reads)
    })
}

#[test]
fn each_key_is_a_register_and_scans_keep_their_promises() {
    for shape in SHAPES {
        let index = Index::new();
        let reads = run(&index, shape, Duration::from_millis(1500)).unwrap();
        assert!(reads > KEYS, "{shape:?}: {reads} reads");
    }
}

/// Puts and deletes thousands of items between the keys that stay, so that all nodes are split and
/// removed again and again, and counts how often.
fn churn(index: &Index, shape: Shape, rounds: &AtomicU64, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        // The strides have no common factor with the number of keys.
        for (stride, is_put) in [(1, true), (7, false), (1999, true), (1, false)] {
            for number in 0..FIXED {
                let near = number * stride % FIXED * GAP;
                for word in near + 1..near + GAP {
                    let key = shape.key(word);
                    match is_put {
                        true => index.put(&key, b"moves"),
                        false => {
                            index.delete(&key);
                        }
                    }
                }
            }
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

/// Scans from this key on, and checks that the scan shows all keys that stay.
fn scan_fixed(index: &Index, shape: Shape, at: u64, direction: Direction) {
    let (first, mut next) = match direction {
        Direction::Forward => (at, at),
        Direction::Backward => (at, FIXED),
    };
    let start = shape.fixed(first);
    let range = Range {
        start: Start::At(&start),
        end: None,
    };
    let mut last = None::<Vec<u8>>;
    index.scan(range, direction, |key, _| {
        let is_next = last.as_ref().is_none_or(|last| match direction {
            Direction::Forward => key > &last[..],
            Direction::Backward => key < &last[..],
        });
        assert!(is_next, "{key:?} after {last:?}");
        last = Some(key.to_vec());
        if let Some(number) = staying(key) {
            next -= u64::from(direction == Direction::Backward);
            assert_eq!(number, next, "{direction:?} from {at}");
            next += u64::from(direction == Direction::Forward);
        }
        true
    });
    let end = match direction {
        Direction::Forward => FIXED,
        Direction::Backward => at,
    };
    assert_eq!(next, end, "{direction:?} from {at}");
}

fn scan_during_churn(shape: Shape) {
    let index = Index::new();
    (0..FIXED).for_each(|number| index.put(&shape.fixed(number), b"stays"));
    let (rounds, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let end = Instant::now() + Duration::from_millis(1500);
    std::thread::scope(|scope| {
        let churning = scope.spawn(|| churn(&index, shape, &rounds, &is_over));
        let scanning = scope.spawn(|| {
            let mut at = 0;
            // On a busy machine, the other thread may need longer.
            while Instant::now() < end || rounds.load(Ordering::Relaxed) < 2 {
                at = (at + 701) % FIXED;
                scan_fixed(&index, shape, at, Direction::Forward);
                scan_fixed(&index, shape, at, Direction::Backward);
            }
        });
        let scanned = scanning.join();
        is_over.store(true, Ordering::Relaxed);
        churning.join().unwrap();
        scanned.map_err(|_| "a scan was wrong").unwrap();
    });
}

#[test]
fn scans_show_all_keys_that_stay_while_nodes_are_split_and_removed() {
    SHAPES.into_iter().for_each(scan_during_churn);
}

#[test]
fn the_check_detects_wrong_reads() {
    // Writes 1 to 6 are puts, and write 7 is a delete.
    assert!(is_possible(0, 0, None) && !is_possible(0, 0, Some(1)));
    assert!(is_possible(0, 1, None) && is_possible(0, 1, Some(1)));
    assert!(is_possible(2, 2, Some(1)) && !is_possible(2, 2, None));
    assert!(!is_possible(4, 5, Some(1)) && is_possible(4, 5, Some(3)));
    assert!(is_possible(14, 14, None) && !is_possible(14, 14, Some(7)));
}

#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_is_found() {
    use dunlin_index::Mutant;
    for (mutant, message) in [(Mutant::OldRead, "shows"), (Mutant::Again, "after")] {
        for shape in SHAPES {
            let index = Index::with_mutant(mutant);
            let what = run(&index, shape, Duration::from_secs(30)).unwrap_err();
            assert!(what.contains(message), "{mutant:?}, {shape:?}: {what}");
        }
    }
}
