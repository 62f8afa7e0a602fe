//! A seat: the node of a replica, and its sessions with the other members.
//!
//! A parcel of another member is answered in the run that it starts, with all messages for that
//! member that answer others: so a follower's answer to an append is the response of the call that
//! has brought it (eRPC §7.1). All other messages travel in calls of their own, one for each member
//! and run, or several if they are long: long calls would miss their deadline. A call that fails
//! tells Raft that messages may be lost. Called by `replica`.

use std::task::Waker;

use dunlin_core::{CallOptions, Cx, Done, Nanos, RpcError, Session, SessionEvent, Tag, Ticket};
use dunlin_wire::ErrorCode;
use raft::eraftpb::Message;

use super::log_clock::LogClock;
use super::outbox::{is_answer, is_snapshot, take_for};
use super::peers::Peer;
use super::watchers::Watchers;
use crate::lanes::{Lanes, Pauses};
use crate::node::{Image, Node, Output};
use crate::options::Options;
use crate::wire::{
    Envelope, Operation, Order, PARCEL, Parcel, Request, Roster, STRANGER, Status, TWIN,
};
use crate::work::Disk;

/// Marks the tags of a replica's calls among those of its endpoint: "rs".
pub(super) const MARK: u64 = 0x7273 << 48;

/// Marks the calls with parts of snapshots among those of a replica.
pub(super) const PART: u64 = 1 << 32;

/// Most messages in the response to a parcel.
const MOST_ANSWERS: usize = 16;

/// Calls to one member that have not ended. Messages for it are dropped while there are more.
const MOST_CALLS: u32 = 32;

/// Most other members and strangers.
const MOST_PEERS: usize = 32;

/// News of a call, for Raft.
#[derive(Debug)]
pub(super) enum Note {
    /// Messages for this member may be lost.
    Unreachable(u64),
    /// This member has all of its snapshot, or not.
    Sent(u64, bool),
}

pub(super) struct Seat {
    /// The members with which it began.
    first: Roster,
    pub(super) cluster: u64,
    /// The number of this process, drawn in its first run.
    life: u64,
    has_twin: bool,
    pub(super) node: Node<Ticket>,
    /// `None`: the log is in memory alone.
    pub(super) disk: Option<Box<dyn Disk>>,
    /// The other members, also former ones; each has the lane of the same number.
    pub(super) peers: Vec<Peer>,
    /// Changes of the roster that `peers` follows; `None`: it follows none yet.
    pub(super) met: Option<u64>,
    pub(super) lanes: Lanes,
    /// Sessions that no lane has any more.
    pub(super) ended: Vec<Session>,
    tick: Nanos,
    pub(super) next_tick: Nanos,
    /// A call to a member lasts this long at most.
    pub(super) deadline: Nanos,
    /// Messages that have come in since the last run. Handlers note them here, because the endpoint
    /// would catch a panic of Raft.
    pub(super) inbox: Vec<Message>,
    pub(super) notes: Vec<Note>,
    orders: Vec<Order>,
    /// Parts of snapshots that have come and are not answered.
    pub(super) parts: Vec<Ticket>,
    pub(super) piece_bytes: usize,
    /// Most bytes of a parcel with several messages.
    parcel_bytes: usize,
    /// Something has come in since the last run.
    pub(super) is_stirred: bool,
    clock: LogClock,
    watchers: Watchers,
    /// Most clients that watch at a time.
    most_watchers: usize,
    /// An operation has come in that needs the log's time.
    needs_time: bool,
    pub(super) output: Output<Ticket>,
    /// Messages for one member, empty between two runs.
    batch: Vec<Message>,
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
            notes: Vec::new(),
            orders: Vec::new(),
            parts: Vec::new(),
            piece_bytes: options.piece_bytes,
            parcel_bytes: usize::try_from(options.append_bytes).unwrap_or(usize::MAX),
            is_stirred: true,
            clock: LogClock::of(options),
            watchers: Watchers::default(),
            most_watchers: options.operations,
            needs_time: false,
            output: Output::default(),
            batch: Vec::new(),
            first,
        };
        seat.meet(id);
        seat
    }

    /// The same seat, whose log is on a disk.
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
            // A read that finds the leader too busy is refused there, too.
            _ if request.operation.is_read() => self.node.on_get(bytes.to_vec(), ticket),
            _ => self.node.on_write(bytes, ticket),
        }
    }

    /// Takes an order. False: it cannot be carried out.
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

    /// Whether a parcel is for this member, and of another one.
    pub(super) fn accepts(&self, parcel: &Envelope, own: u64) -> bool {
        parcel.cluster == self.cluster && parcel.to == own && self.knows(parcel.from, own)
    }

    /// Whether messages of a member can be taken: it is known, or it may have joined without this
    /// member's knowledge.
    pub(super) fn knows(&self, id: u64, own: u64) -> bool {
        let is_known = self.peers.iter().any(|peer| peer.id == id);
        let has_room = || self.peers.len() < MOST_PEERS || self.free_lane().is_some();
        is_known || (id != 0 && id != own && has_room())
    }

    /// Takes a parcel, and returns the lane of its sender.
    pub(super) fn on_parcel(
        &mut self,
        bytes: &[u8],
        own: u64,
        now: Nanos,
    ) -> Result<usize, ErrorCode> {
        let before = self.inbox.len();
        let envelope = Envelope::take(bytes, &mut self.inbox);
        let envelope = envelope.map_err(|_| ErrorCode::UNDECODABLE)?;
        let admitted = self.admit(&envelope, own, now);
        match admitted {
            Ok(_) => self.is_stirred = true,
            Err(_) => self.inbox.truncate(before),
        }
        admitted
    }

    pub(super) fn on_kept(&mut self, lane: usize, ticket: Ticket) {
        self.peers[lane].tickets.push(ticket);
    }

    /// The lane of a parcel's sender, if its messages count.
    fn admit(&mut self, parcel: &Envelope, own: u64, now: Nanos) -> Result<usize, ErrorCode> {
        if !self.accepts(parcel, own) {
            return Err(STRANGER);
        }
        let lane = self.lane_of(parcel.from);
        match self.accepts_life(lane, parcel, now) {
            true => Ok(lane),
            false if self.peers[lane].lives.are_two() => Err(TWIN),
            false => Err(STRANGER),
        }
    }

    /// Takes the life of a parcel's sender. False: its messages do not count.
    fn accepts_life(&mut self, lane: usize, parcel: &Envelope, now: Nanos) -> bool {
        self.has_twin |= parcel.are_two;
        let late = self.deadline.times(2);
        self.peers[lane].lives.on_parcel(parcel.life, now, late)
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
        self.is_stirred = true;
        self.peers[lane].calls -= 1;
        match mark & PART {
            0 => self.on_parcel_done(lane, &done, own, cx.now()),
            _ => self.on_piece_done(lane, done.result.is_ok()),
        }
        cx.recycle([done.request, done.response]);
        None
    }

    fn on_parcel_done(&mut self, lane: usize, done: &Done, own: u64, now: Nanos) {
        let before = self.inbox.len();
        let envelope = Envelope::take(done.response.data(), &mut self.inbox);
        let counts = envelope.is_ok_and(|it| {
            done.result.is_ok() && self.accepts(&it, own) && self.accepts_life(lane, &it, now)
        });
        if !counts {
            self.inbox.truncate(before);
            self.notes.push(Note::Unreachable(self.peers[lane].id));
        }
        self.has_twin |= matches!(done.result, Err(RpcError::Rejected(TWIN, _)));
    }

    pub(super) fn on_session(&mut self, event: SessionEvent, now: Nanos) {
        match event {
            SessionEvent::Connected(session) => {
                self.lanes.on_connected(session);
            }
            SessionEvent::Closed { session, .. } => self.lanes.on_closed(session, now),
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
            // A copy, so that what the endpoint draws does not depend on it.
            self.life = cx.rng().clone().next_u64().max(1);
        }
        if cx.now() >= self.next_tick {
            // After a pause of the process, one tick passes. More would have it ask for votes
            // before it has read the messages that wait for it.
            self.next_tick = cx.now() + self.tick;
            self.node.on_tick();
        }
        for note in self.notes.drain(..) {
            match note {
                Note::Unreachable(id) => self.node.on_unreachable(id),
                Note::Sent(id, is_whole) => self.node.on_snapshot_sent(id, is_whole),
            }
        }
        for message in self.inbox.drain(..) {
            self.node.on_message(message);
        }
        for order in self.orders.drain(..) {
            match order {
                Order::Transfer(to) => self.node.hand_over(to),
                Order::Snapshot => self.node.shorten(),
                Order::Join(member) => self.node.on_join(member),
                Order::Leave(id) => self.node.on_leave(id),
            }
        }
        if let Some(disk) = &mut self.disk {
            self.node.on_saved(disk.saved(cx.now()));
        }
        self.node.on_time(cx.now());
        self.set_time(cx.now());
        let mut output = std::mem::take(&mut self.output);
        self.node.run(cx.rng(), &mut output);
        self.meet(own);
        for session in self.ended.drain(..) {
            // Its peer may have ended it.
            let _ = cx.disconnect(session);
        }
        if let Some(disk) = &mut self.disk {
            let work = output.work.drain(..);
            work.for_each(|work| disk.submit(work, cx.now()));
        }
        // Clients first: what the others get after a commit is not urgent.
        self.answer(&mut output, cx);
        self.answer_parts(cx);
        for lane in 0..self.peers.len() {
            self.send(own, lane, &mut output.messages, cx);
        }
        output.messages.clear();
        self.output = output;
        if self.watchers.len() > 0 {
            self.watchers.run(&self.node, &self.moved(), cx);
        }
    }

    /// Sets the log's time, if this member leads, and an operation needs it or an item must go.
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

    /// Sends a member the messages for it.
    fn send(&mut self, own: u64, lane: usize, messages: &mut Vec<Message>, cx: &mut Cx<'_>) {
        let peer = &self.peers[lane];
        let to = peer.id;
        let has_work = !peer.tickets.is_empty() || peer.sending.is_some();
        if !has_work && !messages.iter().any(|it| it.to == to) {
            return;
        }
        let envelope = Envelope {
            cluster: self.cluster,
            from: own,
            to,
            life: self.life,
            are_two: peer.lives.are_two(),
        };
        let mut batch = std::mem::take(&mut self.batch);
        take_for(to, messages, &mut batch);
        let answers = self.reply_to(lane, &envelope, &batch, cx);
        while let Some(message) = batch.pop_if(|it| is_snapshot(it)) {
            self.begin_sending(lane, message);
        }
        self.send_piece(own, lane, cx);
        for part in Parcel::split(&batch[answers..], self.parcel_bytes) {
            if !self.call(lane, &envelope, part, cx) {
                self.node.on_unreachable(to);
            }
        }
        batch.clear();
        self.batch = batch;
    }

    /// Answers the parcels of a member: the last one with the messages that answer others, of which
    /// it returns the number.
    fn reply_to(
        &mut self,
        lane: usize,
        envelope: &Envelope,
        batch: &[Message],
        cx: &mut Cx<'_>,
    ) -> usize {
        let mut reply = |ticket, messages| {
            // The other member may have given up.
            let _ = cx.reply(ticket, envelope.size(messages), |out| {
                envelope.encode(messages, out);
            });
        };
        let tickets = &mut self.peers[lane].tickets;
        let Some(last) = tickets.pop() else {
            return 0;
        };
        let answers = batch.iter().take(MOST_ANSWERS);
        let answers = answers.take_while(|it| is_answer(it)).count();
        reply(last, &batch[..answers]);
        tickets.drain(..).for_each(|ticket| reply(ticket, &[]));
        answers
    }

    /// Sends a parcel in a call. False: it cannot go.
    fn call(
        &mut self,
        lane: usize,
        envelope: &Envelope,
        messages: &[Message],
        cx: &mut Cx<'_>,
    ) -> bool {
        let session = self.lanes.open(lane);
        let Some(session) = session.filter(|_| self.peers[lane].calls < MOST_CALLS) else {
            return false;
        };
        let request = cx.buf(envelope.size(messages));
        let response = cx.buf(Parcel::room(MOST_ANSWERS));
        let (Ok(mut request), Ok(response)) = (request, response) else {
            return false;
        };
        envelope.encode(messages, request.data_mut());
        let options = CallOptions {
            deadline: Some(self.deadline),
        };
        let tag = Tag(MARK | lane as u64);
        match cx.call_with(session, PARCEL, request, response, tag, options) {
            Ok(_) => {
                self.peers[lane].calls += 1;
                true
            }
            Err(refused) => {
                cx.recycle([refused.request, refused.response]);
                false
            }
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
