//! Parcels: the messages of Raft between this member and the others.
//!
//! A parcel of another member is answered in the run that it triggers, and the answer contains all
//! answers for that member. So a follower's answer to an append is the response to the call that
//! brought it (eRPC §7.1). All other messages travel in calls of their own. Each run makes one call
//! for each member, or several if the messages are long: long calls would miss their deadline. When
//! a call fails, Raft learns that messages may be lost.
//!
//! The first parcels of a session name the cluster, both members and the sender's life. A session
//! connects two processes and ends with either, so the receiver keeps the names with the session.
//! Once a parcel with names is answered, the sender leaves them out. An answer has names if its
//! parcel has names. Called by `seat`.

use dunlin_core::{CallOptions, Cx, Done, Nanos, RpcError, Session, Tag, Ticket};
use dunlin_wire::ErrorCode;
use raft::eraftpb::Message;

use super::outbox::{Packer, is_snapshot};
use super::peers::Peer;
use super::seat::{MARK, Note, Seat};
use crate::wire::{Confirmation, Envelope, Names, PARCEL, Parcel, STRANGER, TWIN};

/// The most messages in the response to a parcel.
const MOST_ANSWERS: usize = 16;

/// The most unfinished calls to one member. While there are more, messages for it are dropped.
const MOST_CALLS: u32 = 32;

/// A parcel that has not been answered.
#[derive(Debug)]
pub(super) struct Unanswered {
    ticket: Ticket,
    has_names: bool,
}

/// The names that other members have given on their sessions.
#[derive(Debug, Default)]
pub(super) struct Guests(Vec<(Session, Names)>);

impl Guests {
    fn note(&mut self, session: Session, names: Names) {
        self.on_closed(session);
        self.0.push((session, names));
    }

    fn get(&self, session: Session) -> Option<Names> {
        let known = self.0.iter().find(|(it, _)| *it == session)?;
        Some(known.1)
    }

    pub(super) fn on_closed(&mut self, session: Session) {
        self.0.retain(|(it, _)| *it != session);
    }
}

impl Seat {
    /// Whether a parcel comes from another member and is addressed to this one.
    pub(super) fn accepts(&self, names: &Names, own: u64) -> bool {
        names.cluster == self.cluster && names.to == own && self.knows(names.from, own)
    }

    /// Takes a parcel of a session. Returns the lane of its sender, and whether it has names.
    pub(super) fn on_parcel(
        &mut self,
        bytes: &[u8],
        session: Session,
        own: u64,
        now: Nanos,
    ) -> Result<(usize, bool), ErrorCode> {
        let before = self.inbox.len();
        let envelope = Envelope::take(bytes, &mut self.inbox, &mut self.copies);
        let envelope = envelope.map_err(|_| ErrorCode::UNDECODABLE)?;
        let has_names = envelope.names.is_some();
        let names = envelope.names.or_else(|| self.guests.get(session));
        let admitted = match names {
            Some(names) => self.admit(&names, envelope.are_two, own, now),
            None => Err(STRANGER),
        };
        match (admitted, names) {
            (Ok(_), Some(names)) => {
                self.is_stirred = true;
                match has_names {
                    true => self.guests.note(session, names),
                    false => names.sign(&mut self.inbox[before..]),
                }
            }
            _ => self.inbox.truncate(before),
        }
        admitted.map(|lane| (lane, has_names))
    }

    pub(super) fn on_kept(&mut self, (lane, has_names): (usize, bool), ticket: Ticket) {
        let parcel = Unanswered { ticket, has_names };
        self.peers[lane].parcels.push(parcel);
    }

    /// The lane of a parcel's sender, if the replica may use the messages.
    fn admit(
        &mut self,
        names: &Names,
        are_two: bool,
        own: u64,
        now: Nanos,
    ) -> Result<usize, ErrorCode> {
        if !self.accepts(names, own) {
            return Err(STRANGER);
        }
        self.has_twin |= are_two;
        let lane = self.lane_of(names.from);
        match self.accepts_life(lane, names.life, now) {
            true => Ok(lane),
            false if self.peers[lane].lives.are_two() => Err(TWIN),
            false => Err(STRANGER),
        }
    }

    /// Takes the life of a parcel's sender. False: its messages are not used.
    fn accepts_life(&mut self, lane: usize, life: u64, now: Nanos) -> bool {
        let late = self.deadline.times(2);
        self.peers[lane].lives.on_parcel(life, now, late)
    }

    /// Takes the end of a call with a parcel. False: the node has no work because of it.
    pub(super) fn on_parcel_done(
        &mut self,
        lane: usize,
        done: &Done,
        own: u64,
        now: Nanos,
    ) -> bool {
        if let Some(answer) = self.confirmation(lane, done, own, now) {
            let may_wait = self.node.puts_off(&answer);
            if !may_wait {
                self.inbox.push(answer.message(own));
            }
            return !may_wait;
        }
        let before = self.inbox.len();
        let counts = done.result.is_ok() && self.takes_answer(lane, done, own, now);
        if !counts {
            self.inbox.truncate(before);
            let peer = &mut self.peers[lane];
            peer.met = None;
            self.notes.push(Note::Unreachable(peer.id));
        }
        self.has_twin |= matches!(done.result, Err(RpcError::Rejected(TWIN, _)));
        true
    }

    /// The confirmation that is the whole answer to a parcel; `None` if the answer has anything
    /// else, or cannot be used.
    fn confirmation(
        &mut self,
        lane: usize,
        done: &Done,
        own: u64,
        now: Nanos,
    ) -> Option<Confirmation> {
        let (session, names) = self.peers[lane].met?;
        if done.result.is_err() || done.session != session || !self.accepts(&names, own) {
            return None;
        }
        let answer = Confirmation::take(done.response.data(), names.from)?;
        self.accepts_life(lane, names.life, now).then_some(answer)
    }

    /// Takes the answer to a parcel. False: its messages are not used.
    fn takes_answer(&mut self, lane: usize, done: &Done, own: u64, now: Nanos) -> bool {
        let before = self.inbox.len();
        let bytes = done.response.data();
        let Ok(envelope) = Envelope::take(bytes, &mut self.inbox, &mut self.copies) else {
            return false;
        };
        let met = self.peers[lane].met;
        let known = met.filter(|(session, _)| *session == done.session);
        let Some(names) = envelope.names.or(known.map(|it| it.1)) else {
            return false;
        };
        if !self.accepts(&names, own) {
            return false;
        }
        self.has_twin |= envelope.are_two;
        if !self.accepts_life(lane, names.life, now) {
            return false;
        }
        match envelope.names {
            Some(names) => self.peers[lane].met = Some((done.session, names)),
            None => names.sign(&mut self.inbox[before..]),
        }
        true
    }

    /// Sends all members the messages for them.
    pub(super) fn send_all(&mut self, own: u64, cx: &mut Cx<'_>) {
        if self.output.messages.is_empty() && !self.peers.iter().any(Peer::has_work) {
            return;
        }
        let mut messages = std::mem::take(&mut self.output.messages);
        let mut packer = std::mem::take(&mut self.packer);
        for lane in 0..self.peers.len() {
            self.send(own, lane, &mut messages, &mut packer, cx);
        }
        packer.forget();
        self.packer = packer;
        self.node.on_sent(messages);
    }

    /// Sends a member the messages for it.
    fn send(
        &mut self,
        own: u64,
        lane: usize,
        messages: &mut [Message],
        packer: &mut Packer,
        cx: &mut Cx<'_>,
    ) {
        let peer = &self.peers[lane];
        let to = peer.id;
        let is_for_it = |it: &Message| it.to == to;
        if !peer.has_work() && !messages.iter().any(is_for_it) {
            return;
        }
        if !self.peers[lane].parcels.is_empty() {
            let answers = packer.pack_answers(to, messages, MOST_ANSWERS);
            self.reply_to(own, lane, answers, cx);
        }
        for message in messages.iter_mut().filter(|it| is_for_it(it)) {
            if is_snapshot(message) {
                self.begin_sending(lane, std::mem::take(message));
            }
        }
        self.send_piece(own, lane, cx);
        packer.pack(to, messages, |parcel| {
            if !self.call(own, lane, parcel, cx) {
                self.node.on_unreachable(to);
            }
        });
    }

    /// Makes a parcel to a member, without its messages.
    fn envelope(&self, own: u64, lane: usize, has_names: bool) -> Envelope {
        let peer = &self.peers[lane];
        let names = Names {
            cluster: self.cluster,
            from: own,
            to: peer.id,
            life: self.life,
        };
        Envelope {
            names: has_names.then_some(names),
            are_two: peer.lives.are_two(),
        }
    }

    /// Answers the parcels of a member. The answer to the last one has the messages.
    fn reply_to(&mut self, own: u64, lane: usize, answers: &[u8], cx: &mut Cx<'_>) {
        let mut answers = answers;
        while let Some(parcel) = self.peers[lane].parcels.pop() {
            let envelope = self.envelope(own, lane, parcel.has_names);
            let bytes = envelope.around(answers);
            answers = &Parcel::EMPTY;
            // The other member may have given up.
            let _ = cx.reply(parcel.ticket, bytes.len(), |out| {
                out.copy_from_slice(&bytes)
            });
        }
    }

    /// Sends messages in a call. False: the call cannot be made.
    fn call(&mut self, own: u64, lane: usize, messages: &[u8], cx: &mut Cx<'_>) -> bool {
        let session = self.lanes.open(lane);
        let Some(session) = session.filter(|_| self.peers[lane].calls < MOST_CALLS) else {
            return false;
        };
        let met = self.peers[lane].met;
        let has_names = met.is_none_or(|(it, _)| it != session);
        let envelope = self.envelope(own, lane, has_names);
        let request = cx.copy(&envelope.around(messages));
        let response = cx.buf(Parcel::room(MOST_ANSWERS));
        let (Ok(request), Ok(response)) = (request, response) else {
            return false;
        };
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
