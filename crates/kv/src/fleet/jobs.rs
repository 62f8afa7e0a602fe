//! The operations in progress, in a table whose places are reused. A client identifies an operation
//! by its place, so programs may choose any tokens.

use crate::client::{Item, Token};
use crate::error::Error;
use crate::fleet::types::ServerError;

/// An operation, as a client sees it.
#[derive(Debug)]
pub(super) enum Job {
    /// An operation of a program at one server.
    One {
        token: Token,
        /// Whether the operation may end without an item.
        is_get: bool,
    },
    /// Some keys of a get of many: the place of the get, and the indices of the keys in it.
    Part { get: usize, keys: Vec<u16> },
}

impl Job {
    pub(super) const fn is_get(&self) -> bool {
        match self {
            Self::One { is_get, .. } => *is_get,
            Self::Part { .. } => true,
        }
    }
}

/// A get of keys of several servers.
#[derive(Debug)]
pub(super) struct Get {
    pub(super) token: Token,
    pub(super) items: Vec<Result<Option<Item>, Error>>,
    /// The number of servers that have not answered.
    pub(super) left: usize,
    pub(super) failed: Option<ServerError>,
}

/// Entries at places that are reused.
#[derive(Debug)]
pub(super) struct Places<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Places<T> {
    pub(super) const fn live(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, entry: T) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.entries[place] = Some(entry);
                place
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        }
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.entries.get_mut(place)?.as_mut()
    }

    #[inline]
    pub(super) fn remove(&mut self, place: usize) -> Option<T> {
        let entry = self.entries.get_mut(place)?.take()?;
        self.free.push(place);
        Some(entry)
    }
}
