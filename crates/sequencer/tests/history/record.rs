//! The numbers that clients received, with the times of their calls, and the check that they can
//! come from one counter to which one call at a time adds. A call can add its count in any state of
//! the counter. So there is an order of the calls if and only if no two ranges overlap, and no call
//! that began after another had ended received smaller numbers. Gaps are allowed, because calls
//! without an answer explain them.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use dunlin_core::Nanos;
use dunlin_testkit::histories::{self, Line};

/// A call that received numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    pub(crate) numbers: Range<u64>,
}

/// The calls of a sequence.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) taken: Vec<Taken>,
    pub(crate) violation: Option<String>,
}

pub(crate) type Shared = Rc<RefCell<Record>>;

/// Checks the numbers of each sequence, and writes the history with the verdict. Returns the number
/// of calls that received numbers.
///
/// # Errors
/// A description of the fault.
pub(crate) fn judge(records: &[Shared], name: &str) -> Result<u64, String> {
    let records: Vec<_> = records.iter().map(|it| it.borrow()).collect();
    let verdict = records.iter().try_for_each(|record| check(&record.taken));
    let of_sequences = records.iter().enumerate();
    let lines = of_sequences.flat_map(|(sequence, record)| lines(&record.taken, sequence));
    histories::write("sequencer", name, verdict.is_err(), lines);
    verdict?;
    match records.iter().find_map(|it| it.violation.clone()) {
        Some(what) => Err(what),
        None => Ok(records.iter().map(|it| it.taken.len() as u64).sum()),
    }
}

/// The number of places where the upper four bytes changed between two calls with near numbers.
pub(crate) fn carries(records: &[Shared]) -> u64 {
    let of_record = |record: &Shared| {
        let mut firsts: Vec<u64> = {
            let taken = &record.borrow().taken;
            taken.iter().map(|it| it.numbers.start).collect()
        };
        firsts.sort_unstable();
        let is_carry = |pair: &&[u64]| pair[0] >> 32 < pair[1] >> 32 && pair[1] - pair[0] < 1000;
        firsts.windows(2).filter(is_carry).count() as u64
    };
    records.iter().map(of_record).sum()
}

/// The lines of a sequence's calls, for a checker in another language. Calls are ranked by their
/// first numbers. A counter gives numbers only in this order, so the checker need not search for
/// another.
fn lines(taken: &[Taken], sequence: usize) -> Vec<Line> {
    let mut by_number: Vec<&Taken> = taken.iter().collect();
    by_number.sort_by_key(|it| it.numbers.start);
    let line = |(it, rank): (&Taken, u64)| Line {
        object: (0, sequence),
        times: (it.begin.0, it.end.0),
        action: ("take", it.numbers.end - it.numbers.start, rank),
        outcome: ("given", it.numbers.start, 0),
    };
    by_number.into_iter().zip(0..).map(line).collect()
}

/// Whether a counter explains the calls.
///
/// # Errors
/// A description of the fault.
fn check(taken: &[Taken]) -> Result<(), String> {
    let mut by_number: Vec<&Taken> = taken.iter().collect();
    by_number.sort_by_key(|it| it.numbers.start);
    for pair in by_number.windows(2) {
        if pair[1].numbers.start < pair[0].numbers.end {
            return Err(format!(
                "no counter explains {:?} and {:?}: given twice",
                pair[0], pair[1]
            ));
        }
    }
    let mut by_end = by_number.clone();
    by_end.sort_by_key(|it| it.end);
    let mut by_begin = by_number;
    by_begin.sort_by_key(|it| it.begin);
    let (mut ended, mut highest) = (by_end.into_iter().peekable(), None::<&Taken>);
    for call in by_begin {
        while let Some(before) = ended.next_if(|it| it.end < call.begin) {
            if highest.is_none_or(|it| it.numbers.end < before.numbers.end) {
                highest = Some(before);
            }
        }
        if let Some(before) = highest.filter(|it| it.numbers.end > call.numbers.start) {
            return Err(format!("no counter explains {before:?}, and then {call:?}"));
        }
    }
    Ok(())
}

fn taken(begin: u64, end: u64, numbers: Range<u64>) -> Taken {
    Taken {
        begin: Nanos(begin),
        end: Nanos(end),
        numbers,
    }
}

#[test]
fn counters_that_exist_are_found_and_no_others() {
    let good = [
        vec![taken(1, 2, 1..2), taken(3, 4, 2..3)],
        vec![taken(1, 2, 1..2), taken(3, 4, 9..12)],
        // The calls overlap in time, so either may be first.
        vec![taken(1, 5, 2..3), taken(2, 4, 1..2)],
        vec![taken(1, 3, 2..3), taken(3, 4, 1..2)],
    ];
    for calls in good {
        assert_eq!(check(&calls), Ok(()));
    }
    let bad = [
        vec![taken(1, 2, 2..3), taken(3, 4, 1..2)],
        vec![taken(1, 2, 1..2), taken(1, 2, 1..2)],
        vec![taken(1, 2, 1..5), taken(1, 2, 4..6)],
        vec![taken(1, 9, 7..8), taken(2, 3, 5..6), taken(4, 5, 3..4)],
    ];
    for calls in bad {
        assert!(check(&calls).is_err(), "{calls:?}");
    }
}
