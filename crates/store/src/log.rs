//! The memory of the cache mode: a circular log from the start of the region up to the index.
//!
//! Items are appended at the head. When there is no room, the oldest item, which is at the tail,
//! leaves. The log knows only where items begin. The table calls [`Log::step`], removes the oldest
//! item, and calls again.
//!
//! Invariants: before the first wrap, and whenever the tail has passed the end, there is one lap:
//! items from [`START`] to the head. Otherwise there are two laps: newer items from [`START`] to
//! the head, and older ones from the tail to the end of their lap, with nothing between them. The
//! end never cuts an item. No byte at or above the limit is used. The limit never rises, and the
//! index owns the memory above it.

/// The position of the first item: on a cache line, and not at 0, because in a memory dump place 0
/// would look like an empty slot.
pub(crate) const START: usize = 64;

#[derive(Debug)]
pub(crate) struct Log {
    head: usize,
    /// The tail, and the end of its lap.
    older: Option<Older>,
    limit: usize,
    /// The number of bytes appended so far, and the number that have left. As positions, these
    /// counts never repeat.
    appended: u64,
    left: u64,
    laps: u64,
}

/// The items of the previous lap.
#[derive(Clone, Copy, Debug)]
struct Older {
    tail: usize,
    end: usize,
}

/// The next action before an item can be appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The item can be appended.
    Append,
    /// The item at this byte must leave, or move ahead.
    Leave(usize),
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: START,
            older: None,
            limit,
            appended: 0,
            left: 0,
            laps: 0,
        }
    }

    /// The largest item that the log takes. Three items of that size fit, so one can be read while
    /// the next one replaces it.
    pub(crate) fn most_item(&self) -> usize {
        (self.limit - START) / 4
    }

    /// Bytes below the limit.
    pub(crate) fn bytes(&self) -> usize {
        self.limit
    }

    /// How often the head has returned to the start.
    pub(crate) fn laps(&self) -> u64 {
        self.laps
    }

    /// Bytes between the oldest item and the end, if the log has wrapped.
    pub(crate) fn to_end(&self) -> Option<usize> {
        self.older.map(|older| self.limit - older.tail)
    }

    /// The distance of an item from eviction; the oldest item has the least.
    pub(crate) fn distance(&self, at: usize) -> usize {
        match self.older {
            Some(older) if at >= older.tail => at - older.tail,
            _ => at + self.limit,
        }
    }

    /// Whether the item at byte `at` would leave before `len` bytes fit.
    pub(crate) fn leaves_for(&self, at: usize, len: usize) -> bool {
        let wraps = self.head + len > self.limit;
        match self.older {
            Some(older) if at >= older.tail => wraps || at < self.head + len,
            _ => wraps && at < START + len,
        }
    }

    /// Checks whether an item of `len` bytes fits now. If not, returns the item that is in the way.
    #[inline]
    pub(crate) fn step(&mut self, len: usize) -> Step {
        loop {
            match self.older {
                Some(older) if self.head + len <= older.tail => return Step::Append,
                Some(older) => return Step::Leave(older.tail),
                None if self.head + len <= self.limit => return Step::Append,
                None => self.wrap(),
            }
        }
    }

    fn wrap(&mut self) {
        let (tail, end) = (START, self.head);
        // An empty lap has no items that could leave.
        self.older = (tail < end).then_some(Older { tail, end });
        self.head = START;
        self.laps += 1;
    }

    /// Appends an item of `len` bytes, which must fit, and returns its place.
    #[inline]
    pub(crate) fn append(&mut self, len: usize) -> usize {
        let at = self.head;
        self.head += len;
        self.appended += len as u64;
        at
    }

    /// The position of the item that is appended next.
    pub(crate) fn position(&self) -> u64 {
        self.appended
    }

    /// Whether the item that was appended at this position has left: items leave in order.
    pub(crate) fn has_left(&self, position: u64) -> bool {
        self.left > position
    }

    /// Removes the oldest item, which has `len` bytes.
    #[inline]
    pub(crate) fn leave(&mut self, len: usize) {
        let older = self.older.as_mut().expect("the table was given its place");
        older.tail += len;
        self.left += len as u64;
        if older.tail >= older.end {
            self.older = None;
        }
    }

    /// The place of the oldest item of both laps, if there is one.
    pub(crate) fn first(&self) -> Option<usize> {
        let newer = (self.head > START).then_some(START);
        self.oldest().or(newer)
    }

    /// The place of the oldest item of the older lap, if there is one.
    pub(crate) fn oldest(&self) -> Option<usize> {
        self.older.map(|older| older.tail)
    }

    /// Lowers the limit by `len` bytes, but not below the newest lap's items. The log has one lap
    /// when the table calls this.
    pub(crate) fn give_end(&mut self, len: usize) {
        debug_assert!(self.older.is_none());
        self.limit = self.head.max(self.limit.saturating_sub(len));
    }

    /// Lowers the limit to `to`, unless items lie above it.
    pub(crate) fn lower_limit(&mut self, to: usize) -> bool {
        let used = self.older.map_or(self.head, |older| older.end);
        let may = used <= to;
        if may {
            self.limit = self.limit.min(to);
        }
        may
    }
}

#[cfg(test)]
mod tests;
