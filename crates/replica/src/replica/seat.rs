//! A seat: the node of a replica, and its sessions with the other members.
//!
//! Handlers note input. Each run lets the node work on it, answers clients, and sends messages to
//! the other members (`parcels.rs`). Called by `replica`.

use std::task::Waker;

use dunlin_core::{Cx, Done, Nanos, Session, SessionEvent, Ticket};
use raft::eraftpb::Message;

use super::log_clock::LogClock;
use super::outbox::Packer;
use super::parcels::Guests;
use super::peers::Peer;
use super::watchers::Watchers;
use crate::lanes::{Lanes, Pauses};
use crate::node::{Image, Node, Output};
use crate::options::Options;
use crate::wire::copies::Copies;
use crate::wire::{Operation, Order, Request, Roster, Status};
use crate::work::Disk;

/// Marks the tags of a replica's calls, so that they differ from other tags of the endpoint: "rs".
pub(super) const MARK: u64 = 0x7273 << 48;

/// Marks the tags of calls with parts of snapshots.
pub(super) const PART: u64 = 1 << 32;

/// The most other members and strangers.
const MOST_PEERS: usize = 32;

/// News about a call, for Raft.
#[derive(Debug)]
pub(super) enum Note {
    /// Messages for this member may have been lost.
    Unreachable(u64),
    /// This member has received all of its snapshot (true), or not.
    Sent(u64, bool),
}

pub(super) struct Seat {
    /// The members with which the seat began.
    first: Roster,
    pub(super) cluster: u64,
    /// The number of this process, drawn in its first run.
    pub(super) life: u64,
    pub(super) has_twin: bool,
    pub(super) node: Node<Ticket>,
    /// `None`: the log is only in memory.
    pub(super) disk: Option<Box<dyn Disk>>,
    /// The other members, including former ones. Each has the lane of the same index.
    pub(super) peers: Vec<Peer>,
    /// The number of roster changes that `peers` reflects; `None` at first.
    pub(super) met: Option<u64>,
    pub(super) lanes: Lanes,
    /// Sessions that no lane uses any more.
    pub(super) ended: Vec<Session>,
    tick: Nanos,
    pub(super) next_tick: Nanos,
    /// A call to a member lasts at most this long.
    pub(super) deadline: Nanos,
    /// Messages that have arrived since the last run. Handlers note them here, because the endpoint
    /// would catch a panic of Raft.
    pub(super) inbox: Vec<Message>,
    /// The bytes of entries that arrive.
    pub(super) copies: Copies,
    pub(super) notes: Vec<Note>,
    orders: Vec<Order>,
    /// Parts of snapshots that have arrived and are not answered.
    pub(super) parts: Vec<Ticket>,
    pub(super) piece_bytes: usize,
    pub(super) packer: Packer,
    pub(super) guests: Guests,
    /// There has been input since the last run.
    pub(super) is_stirred: bool,
    clock: LogClock,
    watchers: Watchers,
    /// The most clients that may watch at a time.
    most_watchers: usize,
    /// An operation that needs the log's time has arrived.
    needs_time: bool,
    pub(super) output: Output<Ticket>,
}

impl Seat {
    pub(super) fn new(id: u64, first: Roster, image: Image, options: &Options) -> Self {
        let pauses = Pauses {
            least: options.least_pause,
            most: options.most_pause,
        };
        let mut seat = Self {
            cluster: first.cluster(),
            life: 0,
            has_twin: false,
            node: Node::new(id, image, *options),
            disk: None,
            peers: Vec::new(),
            lanes: Lanes::new([], pauses),
            ended: Vec::new(),
            met: None,
            tick: options.tick(),
            next_tick: Nanos::ZERO,
            deadline: options.election,
            inbox: Vec::new(),
            copies: Copies::new(),
            notes: Vec::new(),
            orders: Vec::new(),
            parts: Vec::new(),
            piece_bytes: options.piece_bytes,
            packer: Packer::new(usize::try_from(options.append_bytes).unwrap_or(usize::MAX)),
            guests: Guests::default(),
            is_stirred: true,
            clock: LogClock::of(options),
            watchers: Watchers::default(),
            most_watchers: options.operations,
            needs_time: false,
            output: Output::default(),
            first,
        };
        seat.meet(id);
        seat
    }

    /// Puts the seat's log on a disk.
    pub(super) fn with_disk(self, disk: Box<dyn Disk>) -> Self {
        Self {
            node: self.node.with_disk(),
            disk: Some(disk),
            ..self
        }
    }

    pub(super) const fn first_roster(&self) -> &Roster {
        &self.first
    }

    pub(super) const fn node(&self) -> &Node<Ticket> {
        &self.node
    }

    pub(super) fn disk(&self) -> Option<&dyn Disk> {
        self.disk.as_deref()
    }

    pub(super) fn status(&self, id: u64) -> Status {
        let node = &self.node;
        Status {
            id,
            role: node.role(),
            term: node.term(),
            leader: node.leader(),
            last: node.log().last(),
            committed: node.committed(),
            applied: node.applied(),
            first: node.log().base() + 1,
            keys: node.keys() as u64,
            items: 0,
            members: Some(node.roster().clone()),
            followers: self.followers(),
        }
    }

    pub(super) fn on_operation(&mut self, request: &Request<'_>, bytes: &[u8], ticket: Ticket) {
        self.is_stirred = true;
        self.needs_time |= request.operation.needs_time();
        match request.operation {
            Operation::Watch(from) if self.watchers.len() < self.most_watchers => {
                self.watchers.add(request.key, from, ticket);
            }
            // A read is refused here, too, if the leader is too busy.
            _ if request.operation.is_read() => self.node.on_get(bytes.to_vec(), ticket),
            _ => self.node.on_write(bytes, ticket),
        }
    }

    /// Takes an order. False: the order cannot be carried out.
    pub(super) fn on_order(&mut self, order: Order, own: u64) -> bool {
        let leads = self.node.leads();
        let is_member = |id| self.node.roster().get(id).is_some();
        let can_obey = match &order {
            Order::Snapshot => true,
            Order::Transfer(0) => leads,
            Order::Transfer(to) | Order::Leave(to) => leads && *to != own && is_member(*to),
            Order::Join(member) => leads && member.id != own,
        };
        if can_obey {
            self.orders.push(order);
            self.is_stirred = true;
        }
        can_obey
    }

    /// Whether messages of a member can be taken: this member knows it, or it may have joined
    /// without this member's knowledge.
    pub(super) fn knows(&self, id: u64, own: u64) -> bool {
        let is_known = self.peers.iter().any(|peer| peer.id == id);
        let has_room = || self.peers.len() < MOST_PEERS || self.free_lane().is_some();
        is_known || (id != 0 && id != own && has_room())
    }

    /// Whether a member refuses this one because another process has its number.
    pub(super) const fn has_twin(&self) -> bool {
        self.has_twin
    }

    pub(super) fn on_done(&mut self, done: Done, own: u64, cx: &mut Cx<'_>) -> Option<Done> {
        let mark = done.tag.0 ^ MARK;
        let lane = usize::try_from(mark & !PART).unwrap_or(usize::MAX);
        if lane >= self.peers.len() {
            return Some(done);
        }
        self.peers[lane].calls -= 1;
        self.is_stirred |= match mark & PART {
            0 => self.on_parcel_done(lane, &done, own, cx.now()),
            _ => {
                self.on_piece_done(lane, done.result.is_ok());
                true
            }
        };
        cx.recycle([done.request, done.response]);
        None
    }

    pub(super) fn on_session(&mut self, event: SessionEvent, now: Nanos) {
        match event {
            SessionEvent::Connected(session) => {
                self.lanes.on_connected(session);
            }
            SessionEvent::Closed { session, .. } => {
                self.guests.on_closed(session);
                self.lanes.on_closed(session, now);
            }
            SessionEvent::Accepted(_) => {}
        }
    }

    pub(super) fn wish(&mut self, now: Nanos) -> Option<String> {
        self.lanes.wish(now)
    }

    pub(super) fn on_connecting(&mut self, address: &str, session: Session) {
        if !self.lanes.on_connecting(address, session) {
            self.ended.push(session);
            self.is_stirred = true;
        }
    }

    pub(super) fn on_refused(&mut self, address: &str, now: Nanos) {
        self.lanes.on_refused(address, now);
    }

    pub(super) fn wake_with(&mut self, waker: Waker) {
        if let Some(disk) = &mut self.disk {
            disk.wake_with(waker);
        }
    }

    pub(super) fn run(&mut self, own: u64, cx: &mut Cx<'_>) {
        self.is_stirred = false;
        if self.life == 0 {
            // Draw from a copy, so that the endpoint's own draws do not depend on it.
            self.life = cx.rng().clone().next_u64().max(1);
        }
        if cx.now() >= self.next_tick {
            // After a pause of the process, only one tick passes. With more, it would ask for votes
            // before it has read the waiting messages.
            self.next_tick = cx.now() + self.tick;
            self.node.on_tick();
        }
        if !self.notes.is_empty() {
            self.take_notes();
        }
        if !self.inbox.is_empty() {
            self.take_messages();
        }
        if !self.orders.is_empty() {
            self.take_orders();
        }
        if let Some(disk) = &mut self.disk {
            self.node.on_saved(disk.saved(cx.now()));
        }
        self.node.on_time(cx.now());
        self.set_time(cx.now());
        self.node.run(cx.rng(), &mut self.output);
        self.meet(own);
        while let Some(session) = self.ended.pop() {
            // The peer may have ended it.
            let _ = cx.disconnect(session);
        }
        if let Some(disk) = &mut self.disk {
            let work = self.output.work.drain(..);
            work.for_each(|work| disk.submit(work, cx.now()));
        }
        // Clients first: the messages that followers get after a commit are not urgent.
        self.answer(cx);
        self.answer_parts(cx);
        self.send_all(own, cx);
        if self.watchers.len() > 0 {
            self.watchers.run(&self.node, &self.moved(), cx);
        }
    }

    fn take_messages(&mut self) {
        // With one put at a time, messages come one by one.
        if self.inbox.len() == 1
            && let Some(mut message) = self.inbox.pop()
        {
            return match self.node.takes_append(&message) {
                true => self.copies.reuse(message.take_entries().into_vec()),
                false => self.node.on_message(message),
            };
        }
        for message in self.inbox.drain(..) {
            self.node.on_message(message);
        }
    }

    #[cold]
    fn take_notes(&mut self) {
        for note in self.notes.drain(..) {
            match note {
                Note::Unreachable(id) => self.node.on_unreachable(id),
                Note::Sent(id, is_whole) => self.node.on_snapshot_sent(id, is_whole),
            }
        }
    }

    #[cold]
    fn take_orders(&mut self) {
        for order in self.orders.drain(..) {
            match order {
                Order::Transfer(to) => self.node.hand_over(to),
                Order::Snapshot => self.node.shorten(),
                Order::Join(member) => self.node.on_join(member),
                Order::Leave(id) => self.node.on_leave(id),
            }
        }
    }

    /// Sets the log's time, if this member leads and an operation needs it or an item must expire.
    fn set_time(&mut self, now: Nanos) {
        let needs_time = std::mem::take(&mut self.needs_time);
        if !self.node.leads() {
            return;
        }
        let (applied, due) = self.node.times();
        let time = self.clock.read(self.node.term(), applied, now);
        // A full disk takes no entry that can wait.
        let due = due.filter(|_| !self.node.is_full());
        if needs_time || due.is_some_and(|due| self.clock.removes(time, due)) {
            self.node.on_clock(time);
        }
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat")
            .field("first", &self.first)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}
