//! Parcels whose answers wait for the disk.
//!
//! A follower's answer to an append leaves when its disk has the entries. If that is soon, the
//! answer is the response to the append's own call. A call of its own would have another response,
//! and both would wake a process for nothing. If the disk takes longer, the call gets a response
//! without the answer: it has a deadline, and the leader needs the credit for heartbeats. Called by
//! `parcels`.

use std::collections::VecDeque;

use dunlin_core::Nanos;

/// The most parcels of a member that wait: half of a session's credits.
const MOST: usize = 4;

#[derive(Debug)]
struct Waiting<T> {
    parcel: T,
    /// The last write for which a message to the sender waits.
    number: u64,
    /// The parcel waits no longer than until this time.
    end: Nanos,
}

/// The waiting parcels of a member.
#[derive(Debug)]
pub(super) struct Held<T>(VecDeque<Waiting<T>>);

impl<T> Held<T> {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lets a parcel wait for a write, until `end` at most.
    ///
    /// # Errors
    /// The parcel, if too many wait.
    pub(super) fn add(&mut self, parcel: T, number: u64, end: Nanos) -> Result<(), T> {
        if self.0.len() == MOST {
            return Err(parcel);
        }
        self.0.push_back(Waiting {
            parcel,
            number,
            end,
        });
        Ok(())
    }

    /// Moves out the parcels that need not or must not wait. Messages to their sender still wait
    /// for the write of the number `first` and later ones, if for any.
    pub(super) fn take_due(&mut self, first: Option<u64>, now: Nanos, out: &mut Vec<T>) {
        let is_due = |it: &mut Waiting<T>| {
            let is_saved = first.is_none_or(|first| first > it.number);
            is_saved || now >= it.end
        };
        while let Some(it) = self.0.pop_front_if(is_due) {
            out.push(it.parcel);
        }
    }

    /// Moves out the parcel that came last.
    pub(super) fn take_last(&mut self) -> Option<T> {
        self.0.pop_back().map(|it| it.parcel)
    }
}

#[cfg(test)]
mod tests;
