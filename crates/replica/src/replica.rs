//! A replica: a number, and after a bootstrap a seat in a cluster.
//!
//! A process draws its number when it starts. A log in memory ends with its process, so one that
//! starts again has another number and no seat: it can break no promise of its predecessor.
//! Handlers only note what comes in; [`Replica::run`], which the owner of the endpoint calls after
//! each iteration, lets the node work on it. A panic of Raft so reaches the owner's thread. Called
//! by `service` and by the owner.

mod seat;
mod transfer;

use dunlin_core::{Cx, Done, Nanos, Session, SessionEvent, Ticket};

use crate::node::{Image, Node};
use crate::options::Options;
use crate::wire::{Answer, Members, Parcel, Piece, Request, Status};
use seat::Seat;

/// A replica, for the state of an endpoint.
#[derive(Debug)]
pub struct Replica {
    id: u64,
    options: Options,
    seat: Option<Box<Seat>>,
}

/// The reason why a replica takes no seat in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeatError {
    /// It has one in another cluster, or in this one among members with other addresses.
    Taken,
    /// It is none of the members: its process has another number.
    Stranger,
}

impl Replica {
    /// A replica without a seat. Its number must be random, and not 0.
    ///
    /// # Panics
    /// If the number is 0, or the options have a [fault](Options::fault).
    #[must_use]
    pub fn new(id: u64, options: Options) -> Self {
        assert!(id != 0, "0 is the number of no replica");
        if let Some(fault) = options.fault() {
            panic!("{fault}");
        }
        Self {
            id,
            options,
            seat: None,
        }
    }

    /// A replica that goes on with the log and items of its seat.
    ///
    /// # Panics
    /// If the members do not have the number, or the options have a [fault](Options::fault).
    #[must_use]
    pub fn resume(id: u64, members: Members, image: Image, options: Options) -> Self {
        assert!(members.get(id).is_some(), "the replica is a member");
        let mut replica = Self::new(id, options);
        let seat = Seat::new(id, members, image, &options);
        replica.seat = Some(Box::new(seat));
        replica
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Takes a seat. If the replica has it already, among the same members, nothing happens.
    ///
    /// # Errors
    /// [`SeatError`].
    pub fn on_bootstrap(&mut self, members: Members) -> Result<(), SeatError> {
        match &self.seat {
            Some(seat) if *seat.members() == members => return Ok(()),
            Some(_) => return Err(SeatError::Taken),
            None => {}
        }
        if members.get(self.id).is_none() {
            return Err(SeatError::Stranger);
        }
        let image = Image::first(&members);
        let seat = Seat::new(self.id, members, image, &self.options);
        self.seat = Some(Box::new(seat));
        Ok(())
    }

    /// Its state.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.seat {
            Some(seat) => seat.status(self.id),
            None => Status::idle(self.id),
        }
    }

    /// The node of its seat, for checks.
    #[must_use]
    pub fn node(&self) -> Option<&Node<Ticket>> {
        self.seat.as_deref().map(Seat::node)
    }

    /// Takes an operation of a client. `Some`: the answer, because the replica has no seat.
    pub(crate) fn on_operation(&mut self, request: &Request<'_>, ticket: Ticket) -> Option<Answer> {
        match &mut self.seat {
            Some(seat) => {
                seat.on_operation(request, ticket);
                None
            }
            None => Some(Answer::Moved(Vec::new())),
        }
    }

    /// Takes messages of another replica. False: they are not for this one, or of a stranger.
    pub(crate) fn on_parcel(&mut self, parcel: Parcel, ticket: Ticket) -> bool {
        let Some(seat) = self.seat.as_mut() else {
            return false;
        };
        let is_mine = seat.accepts(&parcel, self.id);
        if is_mine {
            seat.on_parcel(parcel, ticket);
        }
        is_mine
    }

    /// Takes a part of a snapshot. False: it is not for this replica, or not the next one.
    pub(crate) fn on_piece(&mut self, piece: &Piece<'_>) -> bool {
        let seat = self.seat.as_mut();
        seat.is_some_and(|seat| seat.on_piece(piece, self.id))
    }

    /// Takes the end of a call. Ends of other calls come back.
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        match &mut self.seat {
            Some(seat) => seat.on_done(done, self.id, cx),
            None => Some(done),
        }
    }

    /// Takes an event of a session. Sessions of others are passed over.
    pub fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        if let Some(seat) = &mut self.seat {
            seat.on_session(event, cx.now());
        }
    }

    /// An address with which the replica wants a session. The owner begins to make one, and passes
    /// it to [`Self::on_connecting`], or reports that it cannot to [`Self::on_refused`].
    pub fn wish(&mut self, now: Nanos) -> Option<String> {
        self.seat.as_mut()?.wish(now)
    }

    /// Notes the session that the owner makes for a wish.
    pub fn on_connecting(&mut self, address: &str, session: Session) {
        if let Some(seat) = &mut self.seat {
            seat.on_connecting(address, session);
        }
    }

    /// Notes that a wish cannot be granted now.
    pub fn on_refused(&mut self, address: &str, now: Nanos) {
        if let Some(seat) = &mut self.seat {
            seat.on_refused(address, now);
        }
    }

    /// Works on all that has come in since the last run, and on the time. The owner calls it after
    /// each iteration of the endpoint. Messages and answers leave with the next iteration.
    ///
    /// # Panics
    /// If the log has lost something that the cluster relies on. The process must end then.
    #[inline]
    pub fn run(&mut self, cx: &mut Cx<'_>) {
        if let Some(seat) = self.seat.as_mut().filter(|seat| seat.is_due(cx.now())) {
            seat.run(self.id, cx);
        }
    }

    /// When [`Self::run`] or [`Self::wish`] has work; [`Nanos::MAX`]: never.
    #[must_use]
    pub fn next_wakeup(&self) -> Nanos {
        self.seat
            .as_ref()
            .map_or(Nanos::MAX, |seat| seat.next_wakeup())
    }
}

impl std::fmt::Display for SeatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Taken => "the replica belongs to another cluster",
            Self::Stranger => "the replica is none of the members",
        })
    }
}

impl std::error::Error for SeatError {}

#[cfg(test)]
mod tests;
