//! A state that is read from the bytes of its image (`image.rs`) as they arrive.
//!
//! Invariants: the state does not count before the whole image was read. Reading costs the caller
//! at most a budget at a time, so no entry waits longer than that. The reader keeps none of the
//! bytes; the caller keeps an incomplete part.

use super::clients::{self, Clients};
use super::frozen::Budget;
use super::items::{self, Items};
use crate::wire::cursor::Cursor;
use crate::wire::{MAX_INDEX, Malformed, VERSION};

/// Bytes of the longest part of an image. If a reader has more bytes than this and still no
/// complete part, it does not wait for further bytes.
const MOST: usize = if items::MOST > clients::MOST {
    items::MOST
} else {
    clients::MOST
};

/// The next part of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Head,
    /// This number of items.
    Items(u32),
    ClientCount,
    /// This number of records of clients.
    Clients(u32),
    Nothing,
}

/// A state of which some parts have been read.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    next: Next,
    applied: u64,
    time: u64,
    items: Items,
    clients: Clients,
}

impl Arrival {
    /// An arrival of which nothing has been read.
    pub(super) const fn new(clients: Clients) -> Self {
        Self {
            next: Next::Head,
            applied: 0,
            time: 0,
            items: Items::new(),
            clients,
        }
    }

    /// Reads parts from the beginning of these bytes, until the budget is spent or all parts are
    /// read, and returns the length of the parts read. `is_last`: no further bytes follow.
    ///
    /// # Errors
    /// The bytes are not an image.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        budget: &mut Budget,
    ) -> Result<usize, Malformed> {
        let mut rest = bytes;
        while !self.is_whole() && !budget.is_spent() {
            let mut cursor = Cursor(rest);
            match self.take_part(&mut cursor) {
                Ok(()) => {
                    budget.spend(rest.len() - cursor.0.len());
                    rest = cursor.0;
                }
                Err(Malformed) if is_last || rest.len() >= MOST => return Err(Malformed),
                Err(Malformed) => break,
            }
        }
        Ok(bytes.len() - rest.len())
    }

    /// Whether all parts have been read.
    pub(crate) fn is_whole(&self) -> bool {
        self.next == Next::Nothing
    }

    /// The last entry that the state contains, once the head has been read.
    pub(crate) const fn applied(&self) -> u64 {
        self.applied
    }

    /// The log's time in the state, once the head has been read.
    pub(super) const fn time(&self) -> u64 {
        self.time
    }

    pub(super) fn into_parts(self) -> (Items, Clients) {
        (self.items, self.clients)
    }

    fn take_part(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        self.next = match self.next {
            Next::Head => self.take_head(cursor)?,
            Next::Items(count) => {
                self.items.take(cursor)?;
                Next::items(count - 1)
            }
            Next::ClientCount => Next::clients(cursor.u32()?),
            Next::Clients(count) => {
                self.clients.take(cursor)?;
                Next::clients(count - 1)
            }
            Next::Nothing => Next::Nothing,
        };
        Ok(())
    }

    fn take_head(&mut self, cursor: &mut Cursor<'_>) -> Result<Next, Malformed> {
        if cursor.u8()? != VERSION {
            return Err(Malformed);
        }
        cursor.zeros::<7>()?;
        let (applied, time) = (cursor.u64()?, cursor.u64()?);
        // Adding a lifetime to the time must not overflow.
        if applied > MAX_INDEX || time > MAX_INDEX {
            return Err(Malformed);
        }
        (self.applied, self.time) = (applied, time);
        Ok(Next::items(cursor.u32()?))
    }
}

impl Next {
    const fn items(count: u32) -> Self {
        match count {
            0 => Self::ClientCount,
            _ => Self::Items(count),
        }
    }

    const fn clients(count: u32) -> Self {
        match count {
            0 => Self::Nothing,
            _ => Self::Clients(count),
        }
    }
}

#[cfg(test)]
mod tests;
