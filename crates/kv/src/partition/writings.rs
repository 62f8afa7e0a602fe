//! The requests whose values are being written in parts.
//!
//! A request whose session has died does not come again, and this list is not notified. After a
//! while, the table gives up the request's write. This list then forgets it when it needs the
//! place.

use dunlin_store::{MOST_WRITINGS, Table, Writing};

/// The writes of requests that will come again, by their tickets.
#[derive(Debug)]
pub(super) struct Writings<T> {
    /// At most [`MOST_WRITINGS`] writes, for which memory is allocated at the start.
    list: Vec<(T, Writing)>,
}

impl<T: PartialEq> Writings<T> {
    pub(super) fn new() -> Self {
        Self {
            list: Vec::with_capacity(MOST_WRITINGS),
        }
    }

    /// Whether this request has a write in progress.
    pub(super) fn has(&self, ticket: &T) -> bool {
        self.list.iter().any(|(of, _)| of == ticket)
    }

    /// Takes the write of a request that has come again.
    pub(super) fn take(&mut self, ticket: &T) -> Option<Writing> {
        let at = self.list.iter().position(|(of, _)| of == ticket)?;
        Some(self.list.swap_remove(at).1)
    }

    /// Keeps a write, which is in progress in the table, until its request comes again.
    pub(super) fn keep(&mut self, ticket: T, writing: Writing, table: &Table) {
        if self.list.len() == MOST_WRITINGS {
            // The table has accepted this write, so it has given up at least one of those in the
            // list.
            self.list.retain(|(_, kept)| table.is_under_way(*kept));
        }
        debug_assert!(self.list.len() < MOST_WRITINGS);
        self.list.push((ticket, writing));
    }
}

#[cfg(test)]
mod tests;
