//! Lanes: the errands of this thread's clients to the partitions of other threads.
//!
//! A lane is a session with the endpoint of another partition in the same process. It has one burst
//! of errands in flight at a time. Errands that arrive meanwhile wait with their clients and leave
//! together, so bursts grow with the load. Therefore, the errands of one client on one key run in
//! the order of its commands. If a session ends, errands that may have run end with an error, the
//! others stay, and the lane connects again.
//!
//! ```text
//! Down ──▶ Connecting ──connected──▶ Idle ──burst──▶ Busy
//!   ▲──────────┴──closed───────────────┴──▲───answer──┴──▶
//! ```

use std::collections::VecDeque;

use dunlin_core::{CallError, Cx, Done, Nanos, Session, SessionEvent, Tag};
use dunlin_memcached::{Errand, OUTPUT_MARK, Standing, answers};
use dunlin_msgbuf::MsgBuf;
use dunlin_store::MAX_VALUE;
use dunlin_wire::{Ran, ReqType};

/// Runs a burst of errands.
pub(crate) const ERRANDS: ReqType = ReqType(0x6b10);

/// A burst with this number of bytes takes no more errands.
const BURST: usize = 16 * 1024;

/// A thread has at most this number of bursts in flight, for any number of lanes. Each has room for
/// the longest answer, so a thread never uses more than 10 MiB for them. The bursts of other lanes
/// grow meanwhile.
const MOST_OUT: usize = 8;

/// Buffers for answers that a thread keeps between bursts.
const KEPT_ROOMS: usize = 2;

/// The longest answer to a burst: an answer as long as the mark, then one more item or part of a
/// list.
const ANSWER: usize = OUTPUT_MARK + MAX_VALUE + OUTPUT_MARK;

/// A server with several threads needs at least this `max_message`: bursts and their answers are
/// messages, and no burst is longer than the longest answer. If bursts were refused, the clients
/// that wait for them would wait forever.
pub const LEAST_MESSAGE: usize = ANSWER;

/// How long a lane stays down before it connects again.
const PAUSE: Nanos = Nanos::from_millis(5);

/// A client that waits for an answer: its place in the front's list, and its number, because
/// another client may get the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asker {
    pub(crate) place: usize,
    pub(crate) client: u64,
}

/// Events of the endpoint, which the front reads between two iterations.
#[derive(Debug)]
pub(crate) enum News {
    Session(SessionEvent),
    Done(Done),
}

/// The result of an errand.
pub(crate) enum End<'a> {
    /// The answer.
    Answer(&'a [u8]),
    /// No answer. The errand may have run.
    Lost,
    /// The errand has not run.
    NotRun,
}

/// The lanes of a thread, one for each partition. The lane of the thread's own partition is never
/// used.
#[derive(Default, Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    own: usize,
    rooms: Rooms,
    /// The lane that sends first, so that all get their turn if there are too few buffers.
    first: usize,
    /// Whether there is new work for a lane without a burst in flight.
    is_stirred: bool,
    /// When the next lane connects; [`Nanos::MAX`] if none is down.
    next_wish: Nanos,
}

/// Buffers for the answers to bursts, shared by all lanes.
#[derive(Default, Debug)]
struct Rooms {
    kept: Vec<MsgBuf>,
    /// Bursts in flight.
    out: usize,
}

#[derive(Debug)]
struct Lane {
    endpoint: u16,
    state: State,
    /// The places of clients that have errands for this lane, and for each place whether it is in
    /// the queue.
    queue: VecDeque<usize>,
    is_queued: Vec<bool>,
    /// The errands in flight, in order.
    burst: Vec<(Asker, Errand)>,
    /// Whether a call has left with the burst and has not ended. The call can outlast its session,
    /// because it ends only when the transport has released the request; the same burst must not
    /// leave twice.
    is_out: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// From this time on it connects.
    Down(Nanos),
    Connecting(Session),
    Idle(Session),
    Busy(Session),
}

impl State {
    fn session(self) -> Option<Session> {
        match self {
            Self::Down(_) => None,
            Self::Connecting(session) | Self::Idle(session) | Self::Busy(session) => Some(session),
        }
    }
}

impl Lanes {
    /// Makes lanes to the partitions at these endpoints.
    pub(crate) fn new(standing: Standing, endpoints: impl Iterator<Item = u16>) -> Self {
        let lane = |endpoint| Lane {
            endpoint,
            state: State::Down(Nanos::ZERO),
            queue: VecDeque::new(),
            is_queued: Vec::new(),
            burst: Vec::new(),
            is_out: false,
        };
        Self {
            lanes: endpoints.map(lane).collect(),
            own: standing.number.into(),
            rooms: Rooms::default(),
            first: 0,
            is_stirred: false,
            next_wish: match standing.of {
                1 => Nanos::MAX,
                _ => Nanos::ZERO,
            },
        }
    }

    /// Notes that the client at a place has errands for a partition.
    pub(crate) fn queue(&mut self, partition: u16, place: usize) {
        let lane = &mut self.lanes[usize::from(partition)];
        if lane.is_queued.len() <= place {
            lane.is_queued.resize(place + 1, false);
        }
        if !std::mem::replace(&mut lane.is_queued[place], true) {
            lane.queue.push_back(place);
            self.is_stirred |= !matches!(lane.state, State::Busy(_));
        }
    }

    /// Whether a session should be made or a burst may be able to leave.
    pub(crate) fn has_work(&self, now: Nanos) -> bool {
        self.is_stirred || now >= self.next_wish
    }

    /// A partition with which a session should be made now, and its endpoint.
    pub(crate) fn wish(&mut self, now: Nanos) -> Option<(usize, u16)> {
        if now < self.next_wish {
            return None;
        }
        self.next_wish = Nanos::MAX;
        let mut wish = None;
        for (partition, lane) in self.lanes.iter().enumerate() {
            match lane.state {
                State::Down(at) if partition != self.own => {
                    if at <= now && wish.is_none() {
                        wish = Some((partition, lane.endpoint));
                    } else {
                        self.next_wish = self.next_wish.min(at);
                    }
                }
                _ => {}
            }
        }
        wish
    }

    /// Notes the session that was made for a wish, if there is one.
    pub(crate) fn on_connecting(&mut self, partition: usize, session: Option<Session>, now: Nanos) {
        match session {
            Some(session) => self.lanes[partition].state = State::Connecting(session),
            None => self.on_down(partition, now),
        }
    }

    fn on_down(&mut self, partition: usize, now: Nanos) {
        self.lanes[partition].state = State::Down(now + PAUSE);
        self.next_wish = self.next_wish.min(now + PAUSE);
    }

    /// Sends a burst on each lane that has none in flight. `next` returns the next errand to a
    /// partition for the client at a place.
    pub(crate) fn send(
        &mut self,
        cx: &mut Cx<'_>,
        mut next: impl FnMut(usize, u16) -> Option<(Asker, Errand)>,
    ) {
        self.is_stirred = false;
        let count = self.lanes.len();
        for partition in (self.first..count).chain(0..self.first) {
            // The end of a burst makes the lanes try again.
            if self.rooms.out == MOST_OUT {
                self.first = partition;
                return;
            }
            let lane = &mut self.lanes[partition];
            let number = u16::try_from(partition).expect("as many as partitions");
            if let State::Idle(session) = lane.state
                && !lane.is_out
            {
                lane.load(|place| next(place, number));
                let tag = Tag(partition as u64);
                self.is_stirred |= !lane.depart(session, tag, &mut self.rooms, cx);
            }
        }
    }

    /// Takes an event, and passes the result of each errand to `see`: first the errands that may
    /// have run, in order, and then those that have not, in reverse order.
    pub(crate) fn on_news(
        &mut self,
        news: News,
        cx: &mut Cx<'_>,
        mut see: impl FnMut(Asker, Errand, End<'_>),
    ) {
        self.is_stirred = true;
        match news {
            News::Session(SessionEvent::Connected(session)) => {
                if let Some(partition) = self.of(session) {
                    self.lanes[partition].state = State::Idle(session);
                }
            }
            News::Session(SessionEvent::Closed { session, .. }) => {
                if let Some(partition) = self.of(session) {
                    self.on_down(partition, cx.now());
                }
            }
            News::Session(SessionEvent::Accepted(_)) => {}
            News::Done(done) => {
                let lane = usize::try_from(done.tag.0).ok();
                if let Some(lane) = lane.and_then(|lane| self.lanes.get_mut(lane)) {
                    let room = lane.on_done(done, cx, &mut see);
                    self.rooms.on_end(room, cx);
                }
            }
        }
    }

    fn of(&self, session: Session) -> Option<usize> {
        let is_it = |lane: &Lane| lane.state.session() == Some(session);
        self.lanes.iter().position(is_it)
    }
}

impl Rooms {
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<MsgBuf> {
        self.kept.pop().or_else(|| cx.buf(ANSWER).ok())
    }

    fn give_back(&mut self, room: MsgBuf, cx: &mut Cx<'_>) {
        match self.kept.len() < KEPT_ROOMS {
            true => self.kept.push(room),
            false => cx.recycle([room]),
        }
    }

    /// Notes the end of a burst.
    fn on_end(&mut self, room: MsgBuf, cx: &mut Cx<'_>) {
        self.out -= 1;
        self.give_back(room, cx);
    }
}

impl Lane {
    /// Fills the burst from the clients in the queue. A burst that still has to leave gets no more
    /// errands.
    fn load(&mut self, mut next: impl FnMut(usize) -> Option<(Asker, Errand)>) {
        let mut bytes = match self.burst.is_empty() {
            true => 0,
            false => BURST,
        };
        while bytes < BURST
            && let Some(place) = self.queue.front().copied()
        {
            if let Some((asker, errand)) = next(place) {
                bytes += errand.bytes().len();
                self.burst.push((asker, errand));
            } else {
                self.queue.pop_front();
                self.is_queued[place] = false;
            }
        }
        // A client that always has more errands must not keep the others out of the next burst.
        if let Some(place) = self.queue.pop_front() {
            self.queue.push_back(place);
        }
    }

    /// Issues the call of the burst, if it has errands. False: the call cannot be issued now.
    fn depart(&mut self, session: Session, tag: Tag, rooms: &mut Rooms, cx: &mut Cx<'_>) -> bool {
        if self.burst.is_empty() {
            return true;
        }
        let bytes = self.burst.iter().map(|(_, errand)| errand.bytes());
        let Some(mut response) = rooms.take(cx) else {
            return false;
        };
        let Ok(mut request) = cx.buf(bytes.clone().map(<[u8]>::len).sum()) else {
            rooms.give_back(response, cx);
            return false;
        };
        let mut out = request.data_mut();
        for bytes in bytes {
            let (place, rest) = out.split_at_mut(bytes.len());
            place.copy_from_slice(bytes);
            out = rest;
        }
        // The previous answer has shortened it.
        let _ = response.resize(ANSWER);
        match cx.call(session, ERRANDS, request, response, tag) {
            Ok(_) => {
                self.state = State::Busy(session);
                self.is_out = true;
                rooms.out += 1;
                true
            }
            Err(CallError {
                request, response, ..
            }) => {
                cx.recycle([request]);
                rooms.give_back(response, cx);
                // If there is no session, the event of its end comes next.
                true
            }
        }
    }

    /// Takes the end of the call, and returns the buffer of its answer.
    fn on_done(
        &mut self,
        done: Done,
        cx: &mut Cx<'_>,
        see: &mut impl FnMut(Asker, Errand, End<'_>),
    ) -> MsgBuf {
        self.is_out = false;
        if self.state == State::Busy(done.session) {
            self.state = State::Idle(done.session);
        }
        let mut burst = self.burst.drain(..);
        match &done.result {
            Ok(()) => {
                for answer in answers(done.response.data()) {
                    let Some((asker, errand)) = burst.next() else {
                        break;
                    };
                    see(asker, errand, End::Answer(answer));
                }
            }
            Err(error) if error.ran() == Ran::No => {}
            Err(_) => {
                for (asker, errand) in burst.by_ref() {
                    see(asker, errand, End::Lost);
                }
            }
        }
        for (asker, errand) in burst.rev() {
            see(asker, errand, End::NotRun);
        }
        cx.recycle([done.request]);
        done.response
    }
}

#[cfg(test)]
mod tests;
