//! One sequence: its next number, and its reserved numbers.

use super::Taken;
use crate::wire::{Head, Name, Progress, Status};

/// The first number of a new sequence, so that a program may use 0 to mean none.
pub(super) const FIRST: u64 = 1;

#[derive(Debug)]
pub(super) struct NamedSequence {
    name: Name,
    /// The first bytes of the requests that name the sequence.
    head: Head,
    next: u64,
    /// No reservation is due while the next number is below this.
    ample: u64,
    /// Numbers below it are reserved: a slot with this limit is on the disk.
    limit: u64,
    /// The limit in the slot that is being saved. `None`: no slot is being saved, or the sequence
    /// is newer than that slot.
    coming: Option<u64>,
    /// How many numbers a reservation adds.
    block: u64,
    /// How many numbers below `next` this server has not given.
    skipped: u64,
    /// Whether a slot of this epoch on the disk has the name, with this limit or a lower one.
    is_known: bool,
    /// Whether a reservation is due.
    is_short: bool,
    /// The longest range for which a request waits.
    wanted: u32,
}

impl NamedSequence {
    /// Makes a sequence whose next number is `limit`, and which has no reserved numbers.
    pub(super) const fn new(
        name: Name,
        head: Head,
        limit: u64,
        is_known: bool,
        block: u64,
    ) -> Self {
        Self {
            name,
            head,
            next: limit,
            ample: 0,
            limit,
            coming: None,
            block,
            skipped: limit,
            is_known,
            is_short: true,
            wanted: 0,
        }
    }

    pub(super) const fn name(&self) -> &Name {
        &self.name
    }

    #[inline]
    pub(super) const fn head(&self) -> Head {
        self.head
    }

    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn is_short(&self) -> bool {
        self.is_short
    }

    /// How many numbers this server has given.
    pub(super) const fn given(&self) -> u64 {
        self.next - self.skipped
    }

    /// Takes numbers, if no reservation is due after that, and returns the first one. This is the
    /// common path, with a single comparison.
    #[inline]
    pub(super) fn take_of_ample(&mut self, count: u64) -> Option<u64> {
        let first = self.next;
        let end = first.checked_add(count)?;
        (end <= self.ample).then(|| {
            self.next = end;
            first
        })
    }

    /// Takes numbers from the rest of the reservation. Another reservation is due, because less
    /// than half of a block is left.
    #[cold]
    pub(super) fn take_of_rest(&mut self, count: u32) -> Taken {
        if self.limit - self.next < u64::from(count) {
            return self.wait(count);
        }
        let first = self.next;
        self.next += u64::from(count);
        self.is_short = true;
        Taken::First(first)
    }

    fn wait(&mut self, count: u32) -> Taken {
        if u64::MAX - self.next < u64::from(count) {
            return Taken::Refused(Status::Exhausted);
        }
        self.wanted = self.wanted.max(count);
        self.is_short = true;
        Taken::Later
    }

    /// Begins a save, and returns the limit for the slot.
    pub(super) const fn begin_save(&mut self) -> u64 {
        let mut coming = self.limit;
        if self.is_known && self.is_short {
            let ahead = self.block.saturating_add(self.wanted as u64);
            let wanted = self.next.saturating_add(ahead);
            if wanted > self.limit {
                coming = wanted;
            }
            self.is_short = false;
            self.wanted = 0;
        }
        self.coming = Some(coming);
        coming
    }

    /// Notes that the slot is on the disk.
    pub(super) const fn on_saved(&mut self) {
        if let Some(limit) = self.coming.take() {
            self.reserve(limit);
            self.is_known = true;
        }
    }

    /// Notes that the slot was not written.
    pub(super) const fn on_unchanged(&mut self) {
        if self.coming.take().is_some() {
            self.is_short = true;
        }
    }

    /// Continues from the limit of the previous epoch, whose server may have given all numbers
    /// below it.
    pub(super) const fn inherit(&mut self, limit: u64) {
        if limit > self.limit {
            self.skipped += limit - self.next;
            self.next = limit;
            self.reserve(limit);
        }
    }

    /// Notes that numbers below this limit may be given.
    const fn reserve(&mut self, limit: u64) {
        self.limit = limit;
        self.ample = limit.saturating_sub(self.block / 2);
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            name: self.name.clone(),
            next: self.next,
            limit: self.limit,
        }
    }
}
