//! Requests for a seat. A handler only notes them: taking a seat starts Raft, and an endpoint would
//! catch its panic. The next run of the replica takes the seat and answers the requests. Called by
//! `replica`.

use dunlin_core::{Cx, Ticket};

use super::SeatError;
use crate::wire::{Members, OTHER_ITEMS, Roster, STRANGER, Status, TAKEN, UNSAVED};

/// The seat that a request asks for.
#[derive(Debug)]
pub(crate) enum SoughtSeat {
    /// A seat in a new cluster.
    First(Members),
    /// A seat in a running cluster.
    Later(Roster),
}

/// Requests that wait for the next run, oldest first. The endpoint's slots bound their number.
#[derive(Debug, Default)]
pub(super) struct Asking(Vec<(SoughtSeat, Ticket)>);

impl Asking {
    pub(super) fn add(&mut self, place: SoughtSeat, ticket: Ticket) {
        self.0.push((place, ticket));
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<(SoughtSeat, Ticket)> {
        std::mem::take(&mut self.0)
    }
}

/// Answers a request with the state of the replica, or with the code of an error.
pub(super) fn answer(seated: Result<Status, SeatError>, ticket: Ticket, cx: &mut Cx<'_>) {
    // The asker may have given up.
    let _ = match seated {
        Ok(status) => {
            let bytes = status.to_bytes();
            cx.reply(ticket, bytes.len(), |out| out.copy_from_slice(&bytes))
        }
        Err(SeatError::Taken) => cx.reject(ticket, TAKEN),
        Err(SeatError::Stranger) => cx.reject(ticket, STRANGER),
        Err(SeatError::Unsaved) => cx.reject(ticket, UNSAVED),
        Err(SeatError::OtherItems) => cx.reject(ticket, OTHER_ITEMS),
    };
}
