//! Operations in flight. Called by `client`.
//!
//! Invariant: a tag names the place of its operation, and no two calls have the same tag until the
//! count of calls wraps around. So a tag of another caller, or of an earlier call in the same
//! place, finds no operation.

use dunlin_core::Tag;

use super::operation::Operation;

/// Marks the tags of the client's calls, so that they differ from other tags of the endpoint: "rc".
const MARK: u64 = 0x7263 << 48;

/// The bits of a tag that name the place.
const PLACE: u64 = (1 << PLACE_BITS) - 1;
const PLACE_BITS: u32 = 24;

/// The bits of the count of calls that lie between the place and the mark.
const COUNT: u64 = (1 << 24) - 1;

#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The operations with the tags of their calls; free places have none.
    places: Vec<Option<(Tag, Operation)>>,
    free: Vec<usize>,
    calls: u64,
}

impl Sent {
    /// The number of operations in flight.
    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The number of calls that got a tag.
    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether there is a place for another operation.
    pub(super) fn has_room(&self) -> bool {
        self.len() as u64 <= PLACE
    }

    /// The tag of the next call, whose operation the caller then [adds](Self::add) if the call is
    /// made.
    pub(super) fn next_tag(&mut self) -> Tag {
        self.calls += 1;
        let place = self.free.last().copied().unwrap_or(self.places.len()) as u64;
        Tag(MARK | (self.calls & COUNT) << PLACE_BITS | place)
    }

    /// Adds the operation of the call that got the last tag.
    pub(super) fn add(&mut self, tag: Tag, operation: Operation) {
        match self.free.pop() {
            Some(place) => self.places[place] = Some((tag, operation)),
            None => self.places.push(Some((tag, operation))),
        }
    }

    /// Takes the operation of a call that has ended; `None` if the tag is that of another caller.
    pub(super) fn take(&mut self, tag: Tag) -> Option<Operation> {
        let index = usize::try_from(tag.0 & PLACE).ok()?;
        let place = self.places.get_mut(index)?;
        let (_, operation) = place.take_if(|it| it.0 == tag)?;
        self.free.push(index);
        Some(operation)
    }
}

#[cfg(test)]
mod tests;
