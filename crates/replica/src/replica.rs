//! A replica: a number, and after a bootstrap a seat in a cluster.
//!
//! A process without a disk draws its number when it starts. A log in memory ends with its process,
//! so a restarted process has another number and no seat: it cannot break a promise of its
//! predecessor. A replica with a disk keeps its number, and continues with the log on the disk.
//! Handlers only note input. [`Replica::run`], which the owner of the endpoint calls after each
//! iteration, lets the node work on it, and takes the seat that a request asks for. So a panic of
//! Raft reaches the owner's thread. Called by `service` and by the owner.

mod answers;
mod asking;
mod due;
mod lives;
mod log_clock;
mod outbox;
mod parcels;
mod peers;
mod pieces;
mod seat;
mod transfer;
mod watchers;

use std::task::Waker;

use dunlin_core::{Cx, Done, Nanos, Session, SessionEvent, Ticket};
use dunlin_wire::ErrorCode;

use crate::node::{Image, Node, Restored};
use crate::options::Options;
use crate::wire::{Answer, Members, Order, Parcel, Piece, Request, Roster, STRANGER, Status};
use crate::work::{Disk, DiskFigures};
use asking::Asking;
pub(crate) use asking::SoughtSeat;
use seat::Seat;

/// A replica, which is the state of an endpoint or a part of it.
#[derive(Debug)]
pub struct Replica {
    id: u64,
    options: Options,
    seat: Option<Box<Seat>>,
    /// The disk of a replica without a seat, if it has one.
    disk: Option<Box<dyn Disk>>,
    /// The restored items with which the cluster of a replica without a seat begins, if any.
    restored: Option<Restored>,
    /// Requests for a seat that have arrived since the last run.
    asking: Asking,
}

/// The reason why a replica takes no seat in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeatError {
    /// The replica has a seat in another cluster, or in this one among members with other
    /// addresses.
    Taken,
    /// The replica is not one of the members: its process has another number.
    Stranger,
    /// The replica's disk could not save the members.
    Unsaved,
    /// The replica has restored items, but not those with which the cluster begins.
    OtherItems,
}

impl Replica {
    /// Makes a replica without a seat. Its number must be random, and not 0.
    ///
    /// # Panics
    /// If the number is 0, or the options have a [fault](Options::fault).
    #[must_use]
    pub fn new(id: u64, options: Options) -> Self {
        assert!(id != 0, "no replica has the number 0");
        if let Some(fault) = options.fault() {
            panic!("{fault}");
        }
        Self {
            id,
            options,
            seat: None,
            disk: None,
            restored: None,
            asking: Asking::default(),
        }
    }

    /// Makes a replica with a disk. It takes up the seat that its disk has kept, if there is one.
    ///
    /// # Panics
    /// As [`Self::new`] and [`Self::resume`].
    #[must_use]
    pub fn with_disk(
        id: u64,
        seat: Option<(Roster, Image)>,
        disk: Box<dyn Disk>,
        options: Options,
    ) -> Self {
        let mut replica = Self::new(id, options);
        replica.disk = Some(disk);
        if let Some((roster, image)) = seat {
            replica.sit(roster, image);
        }
        replica
    }

    /// Sets the restored items with which the cluster of a replica without a seat begins.
    #[must_use]
    pub fn begin_with(mut self, restored: Option<Restored>) -> Self {
        self.restored = restored;
        self
    }

    /// Makes a replica that continues with the log and items of its seat.
    ///
    /// # Panics
    /// If the roster does not have the number, or the options have a [fault](Options::fault).
    #[must_use]
    pub fn resume(id: u64, roster: Roster, image: Image, options: Options) -> Self {
        let mut replica = Self::new(id, options);
        replica.sit(roster, image);
        replica
    }

    fn sit(&mut self, roster: Roster, image: Image) {
        assert!(roster.get(self.id).is_some(), "the replica is a member");
        let seat = Seat::new(self.id, roster, image, &self.options);
        // Take the disk only now: if Raft panics before, the replica still has it.
        self.seat = Some(Box::new(match self.disk.take() {
            Some(disk) => seat.with_disk(disk),
            None => seat,
        }));
    }

    /// The replica's number.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Takes a seat. Does nothing if the replica has it already, among the same members. When the
    /// call returns, the disk, if any, has the members. No handler calls it, because it starts
    /// Raft.
    ///
    /// # Errors
    /// [`SeatError`].
    ///
    /// # Panics
    /// If the disk cannot sync the members. The process must then end.
    pub fn on_bootstrap(&mut self, members: Members) -> Result<(), SeatError> {
        let items = self.restored.as_ref().map_or(0, Restored::digest);
        if self.seat.is_none() && members.items() != items {
            return Err(SeatError::OtherItems);
        }
        self.on_seat(Roster::first(&members))
    }

    /// Takes a seat in a running cluster. The leader makes this replica a member.
    ///
    /// # Errors
    /// [`SeatError`]; [`SeatError::Stranger`] also for the roster of a new cluster, and
    /// [`SeatError::OtherItems`] if the replica has restored items.
    ///
    /// # Panics
    /// As [`Self::on_bootstrap`].
    pub fn on_join(&mut self, roster: Roster) -> Result<(), SeatError> {
        match roster.has_voters() {
            true => Err(SeatError::Stranger),
            false if self.restored.is_some() => Err(SeatError::OtherItems),
            false => self.on_seat(roster),
        }
    }

    fn on_seat(&mut self, roster: Roster) -> Result<(), SeatError> {
        match &self.seat {
            Some(seat) if *seat.first_roster() == roster => return Ok(()),
            Some(_) => return Err(SeatError::Taken),
            None => {}
        }
        if roster.get(self.id).is_none() {
            return Err(SeatError::Stranger);
        }
        if let Some(disk) = &mut self.disk {
            let saved = disk.take_seat(&roster);
            saved.map_err(|_| SeatError::Unsaved)?;
        }
        let image = match self.restored.take() {
            Some(restored) => restored.into_image(roster.clone()),
            None => Image::of(roster.clone()),
        };
        self.sit(roster, image);
        Ok(())
    }

    /// Notes a request for a seat, which the next run answers.
    pub(crate) fn on_asked(&mut self, sought: SoughtSeat, ticket: Ticket) {
        self.asking.add(sought, ticket);
    }

    /// Takes the seat that requests ask for, and answers them.
    #[cold]
    fn answer_asking(&mut self, cx: &mut Cx<'_>) {
        for (sought, ticket) in self.asking.take() {
            let seated = match sought {
                SoughtSeat::First(members) => self.on_bootstrap(members),
                SoughtSeat::Later(roster) => self.on_join(roster),
            };
            asking::answer(seated.map(|()| self.status()), ticket, cx);
        }
    }

    /// The state of the replica.
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.seat {
            Some(seat) => seat.status(self.id),
            None => self.idle(),
        }
    }

    fn idle(&self) -> Status {
        let idle = Status::idle(self.id);
        self.restored
            .as_ref()
            .map_or(idle.clone(), |restored| Status {
                last: restored.applied(),
                committed: restored.applied(),
                applied: restored.applied(),
                keys: restored.keys() as u64,
                items: restored.digest(),
                ..idle
            })
    }

    /// The counters of the disk; zeros without one.
    #[must_use]
    pub fn disk_figures(&self) -> DiskFigures {
        let disk = match &self.seat {
            Some(seat) => seat.disk(),
            None => self.disk.as_deref(),
        };
        disk.map_or(DiskFigures::default(), Disk::figures)
    }

    /// The name of the replica's cluster, if it has a seat.
    #[must_use]
    pub fn cluster(&self) -> Option<u64> {
        self.seat.as_ref().map(|seat| seat.cluster)
    }

    /// The node of the replica's seat, for checks.
    #[must_use]
    pub fn node(&self) -> Option<&Node<Ticket>> {
        self.seat.as_deref().map(Seat::node)
    }

    /// Takes an operation of a client, and its bytes. `Some`: the answer, if the replica has no
    /// seat.
    pub(crate) fn on_operation(
        &mut self,
        request: &Request<'_>,
        bytes: &[u8],
        ticket: Ticket,
    ) -> Option<Answer> {
        match &mut self.seat {
            Some(seat) => {
                seat.on_operation(request, bytes, ticket);
                None
            }
            None => Some(Answer::Moved(Vec::new())),
        }
    }

    /// Takes an order, which the next run carries out. False: the order cannot be carried out.
    pub fn on_order(&mut self, order: Order) -> bool {
        let seat = self.seat.as_mut();
        seat.is_some_and(|seat| seat.on_order(order, self.id))
    }

    /// Takes a parcel of another replica that has arrived on a session. The caller passes the
    /// returned value, the place of that replica and whether the parcel has names, to
    /// [`Self::on_kept`].
    ///
    /// # Errors
    /// [`ErrorCode::UNDECODABLE`]; [`STRANGER`]: the parcel is for another replica, or of a
    /// stranger. [`TWIN`](crate::TWIN): another process has the sender's number.
    pub(crate) fn on_parcel(
        &mut self,
        bytes: &[u8],
        session: Session,
        now: Nanos,
    ) -> Result<(usize, bool), ErrorCode> {
        match &mut self.seat {
            Some(seat) => seat.on_parcel(bytes, session, self.id, now),
            None => Err(match Parcel::decode(bytes) {
                Ok(_) => STRANGER,
                Err(_) => ErrorCode::UNDECODABLE,
            }),
        }
    }

    /// Takes the ticket of a parcel.
    pub(crate) fn on_kept(&mut self, place: (usize, bool), ticket: Ticket) {
        if let Some(seat) = &mut self.seat {
            seat.on_kept(place, ticket);
        }
    }

    /// Whether a member refuses this replica because another process has its number: its directory
    /// was copied, and both copies are in use. The process must end.
    #[must_use]
    pub fn has_twin(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.has_twin())
    }

    /// Takes a part of a snapshot, which is answered once it is read. False: the part is for
    /// another replica, or not the next one.
    pub(crate) fn on_piece(&mut self, piece: &Piece<'_>, ticket: Ticket) -> bool {
        let seat = self.seat.as_mut();
        seat.is_some_and(|seat| seat.on_piece(piece, ticket, self.id))
    }

    /// Takes the end of a call. Returns ends that belong to other calls.
    pub fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) -> Option<Done> {
        match &mut self.seat {
            Some(seat) => seat.on_done(done, self.id, cx),
            None => Some(done),
        }
    }

    /// Takes an event of a session. Ignores events of sessions that are not the replica's.
    pub fn on_session(&mut self, event: SessionEvent, cx: &mut Cx<'_>) {
        if let Some(seat) = &mut self.seat {
            seat.on_session(event, cx.now());
        }
    }

    /// An address to which the replica wants a session. The owner begins to connect, and passes the
    /// session to [`Self::on_connecting`]; if it cannot connect, it calls [`Self::on_refused`].
    pub fn wish(&mut self, now: Nanos) -> Option<String> {
        self.seat.as_mut()?.wish(now)
    }

    /// Notes the session that the owner is making for a wish.
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

    /// Takes the waker of the thread that calls [`Self::run`]. A disk uses it to report news.
    pub fn wake_with(&mut self, waker: Waker) {
        match (&mut self.seat, &mut self.disk) {
            (Some(seat), _) => seat.wake_with(waker),
            (None, Some(disk)) => disk.wake_with(waker),
            (None, None) => {}
        }
    }

    /// Works on all input since the last run, and does the work that is due. The owner calls it
    /// after each iteration of the endpoint. True: there may be messages and answers. They leave
    /// with the next iteration, or earlier if the owner makes the endpoint send them.
    ///
    /// # Panics
    /// If the log has lost something that the cluster relies on, or the disk has failed. The
    /// process must then end.
    #[inline]
    pub fn run(&mut self, cx: &mut Cx<'_>) -> bool {
        let has_answered = !self.asking.is_empty();
        if has_answered {
            self.answer_asking(cx);
        }
        let Some(seat) = self.seat.as_mut().filter(|seat| seat.is_due(cx.now())) else {
            return has_answered;
        };
        let has_run = !seat.catch_up(self.id, cx.now());
        if has_run {
            seat.run(self.id, cx);
        }
        has_run || has_answered
    }

    /// The time at which [`Self::run`] or [`Self::wish`] has work; [`Nanos::MAX`] if never.
    #[must_use]
    pub fn next_wakeup(&self) -> Nanos {
        match &self.seat {
            _ if !self.asking.is_empty() => Nanos::ZERO,
            Some(seat) => seat.next_wakeup(),
            None => Nanos::MAX,
        }
    }
}

impl std::fmt::Display for SeatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Taken => "the replica belongs to another cluster",
            Self::Stranger => "the replica is not one of the members",
            Self::Unsaved => "the disk of the replica cannot save the members",
            Self::OtherItems => "the replica's restored items are not those of the cluster",
        })
    }
}

impl std::error::Error for SeatError {}

#[cfg(test)]
mod tests;
