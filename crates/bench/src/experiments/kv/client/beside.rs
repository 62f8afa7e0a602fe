//! Work at the same time as the operations of a step. It writes new items, which make the index
//! grow and expire after a second, so the sweep has items to remove; and it writes and reads values
//! of 1 MiB in turn. One operation of each kind is in flight at a time.

use dunlin::Cx;
use dunlin::kv::store::MAX_VALUE;
use dunlin::kv::{Client, End, Reply, Request, Store, Token};

use crate::harness::items::{self, Items};
use crate::harness::ticks::{self, Stretch};

/// Tokens that no operation of a step has, because a step uses the numbers of its slots.
const SMALL: Token = Token(u64::MAX);
const LARGE: Token = Token(u64::MAX - 1);

/// Time between two new items, and between two long values, in ns.
const SMALL_GAP: f64 = 100e3;
const LARGE_GAP: f64 = 10e6;

/// Seconds until a new item expires.
const LIFETIME: u32 = 1;

/// The key of the long value. Keys of items have another length.
const LARGE_KEY: &[u8] = b"the long value";

/// The work during steps with `Step::beside`.
#[derive(Debug)]
pub(super) struct Beside {
    is_on: bool,
    small: Due,
    large: Due,
    /// The number of the next new item.
    next: u32,
    value: Vec<u8>,
    long: Vec<u8>,
    /// Whether the next operation on the long value reads it; otherwise, it writes the value.
    reads: bool,
}

/// The time of the next operation of one kind.
#[derive(Debug)]
struct Due {
    /// In ticks; `u64::MAX` while an operation is in flight.
    at: u64,
    gap: u64,
}

impl Beside {
    pub(super) fn new(items: Items) -> Self {
        let ns_per_tick = Stretch::begin().ns_per_tick();
        let due = |gap_ns: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is not negative, and far below 2^63"
            )]
            let gap = (gap_ns / ns_per_tick) as u64;
            Due { at: 0, gap }
        };
        Self {
            is_on: false,
            small: due(SMALL_GAP),
            large: due(LARGE_GAP),
            next: items.count,
            value: vec![0; items.value],
            long: vec![7; MAX_VALUE],
            reads: false,
        }
    }

    /// Turns the work on or off. While it is off, no further operation begins.
    pub(super) const fn switch(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// True if no operation of this work is in flight.
    pub(super) const fn is_idle(&self) -> bool {
        self.small.at != u64::MAX && self.large.at != u64::MAX
    }

    /// Begins the operations that are due.
    ///
    /// # Errors
    /// An operation cannot begin.
    #[inline]
    pub(super) fn turn(&mut self, kv: &mut Client, cx: &mut Cx<'_>) -> Result<(), String> {
        if !self.is_on {
            return Ok(());
        }
        let now = ticks::now();
        if self.small.take(now) {
            let key = items::key(self.next);
            items::fill(&mut self.value, self.next);
            self.next += 1;
            let store = Store {
                lifetime: LIFETIME,
                ..Store::set(&key, &self.value)
            };
            begin(kv, &Request::Write(store), SMALL, cx)?;
        }
        if self.large.take(now) {
            let request = match self.reads {
                true => Request::Get { key: LARGE_KEY },
                false => Request::Write(Store::set(LARGE_KEY, &self.long)),
            };
            begin(kv, &request, LARGE, cx)?;
        }
        Ok(())
    }

    /// Takes the end of an operation. False if the operation does not belong to this work.
    ///
    /// # Errors
    /// It has a wrong result.
    #[inline]
    pub(super) fn on_end(&mut self, end: &End) -> Result<bool, String> {
        let is_right = match (end.token, &end.result) {
            (SMALL, Ok(Reply::Written(_))) => true,
            (LARGE, Ok(Reply::Written(_))) => !self.reads,
            (LARGE, Ok(Reply::Found(found))) => self.reads && found.value() == self.long,
            (SMALL | LARGE, _) => false,
            _ => return Ok(false),
        };
        if !is_right {
            return Err(format!(
                "work during the step has a wrong result: {:?}",
                end.result
            ));
        }
        if end.token == LARGE {
            self.reads = !self.reads;
            self.large.end();
        } else {
            self.small.end();
        }
        Ok(true)
    }
}

impl Due {
    fn take(&mut self, now: u64) -> bool {
        let is_due = self.at <= now;
        if is_due {
            self.at = u64::MAX;
        }
        is_due
    }

    fn end(&mut self) {
        self.at = ticks::now() + self.gap;
    }
}

fn begin(
    kv: &mut Client,
    request: &Request<'_>,
    token: Token,
    cx: &mut Cx<'_>,
) -> Result<(), String> {
    let begun = kv.begin(request, token, None, cx);
    begun.map_err(|error| format!("work during the step cannot begin an operation: {error}"))
}
