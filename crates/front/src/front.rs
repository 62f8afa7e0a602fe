//! The doors and clients of one thread: which of them are ready, and whose turn it is.
//!
//! A client that could continue after its turn goes to the end of the queue. A client that is held
//! back goes there when it may have the [`Floor`](crate::floor::Floor), of which another thread
//! informs this one, or when there is room for all, which this thread notices after a turn and at
//! each look at the sockets.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dunlin_core::Nanos;
use dunlin_nexus::{ConnectOptions, Open, Rpc};
use dunlin_store::Seconds;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::client::{After, Client, Visit};
use crate::desk::Desk;
use crate::door::Door;
use crate::floor::Seat;
use crate::hall::{Guest, Hall};
use crate::lanes::{Asker, Lanes};
use crate::stream::Stream;
use crate::ticker::Ticker;

/// Bytes of one read from a socket: as many as a connection takes before it must run commands.
const BUFFER: usize = dunlin_memcached::INPUT_MARK;

/// Events that one look at the sockets takes.
const EVENTS: usize = 256;

/// The token of the endpoint's descriptor.
const ENDPOINT: usize = 0;

/// The token by which other threads wake this one. The tokens of doors and clients come after
/// `TICK`.
const POST: usize = 1;

/// The token of the tick.
const TICK: usize = 2;

const FIRST_DOOR: usize = 3;

/// The time between two ticks, and so the longest wait: within this time the thread notices that it
/// should end.
pub(crate) const PERIOD: Duration = Duration::from_millis(50);

/// The most clients that one look accepts at each door.
const MOST_LET_IN: usize = 64;

/// Clients that one look visits. Every second, the thread begins a round of visits to all clients.
const VISITED: usize = 64;

/// How long no client is accepted after the process has run out of descriptors.
const PAUSE: Duration = Duration::from_millis(10);

const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

/// The doors and clients of one thread.
#[derive(Debug)]
pub struct Front {
    hall: Arc<Hall>,
    /// The number of this thread.
    number: u16,
    poll: Poll,
    events: Events,
    ticker: Ticker,
    doors: Vec<Entrance>,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    queue: VecDeque<usize>,
    /// Clients that are held back.
    held_back: BTreeSet<usize>,
    lanes: Lanes,
    buffer: Box<[u8]>,
    /// No client is accepted before this time.
    pause: Option<Instant>,
    round: Round,
}

/// A door, and whether clients may wait there.
#[derive(Debug)]
struct Entrance {
    door: Door,
    may_enter: bool,
}

/// The round over all clients, once a second.
#[derive(Default, Debug)]
struct Round {
    begun: Seconds,
    next: usize,
}

impl Front {
    /// Serves clients of these doors, and clients that other threads post, on the thread of
    /// partition `number`.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new(hall: Arc<Hall>, number: u16, doors: Vec<Door>) -> io::Result<Self> {
        let poll = Poll::new()?;
        hall.on_thread(number, Waker::new(poll.registry(), Token(POST))?);
        let enter = |(number, mut door): (usize, Door)| {
            let token = Token(FIRST_DOOR + number);
            let registry = poll.registry();
            registry.register(door.source(), token, Interest::READABLE)?;
            let may_enter = true;
            Ok(Entrance { door, may_enter })
        };
        let doors = doors.into_iter().enumerate().map(enter);
        Ok(Self {
            doors: doors.collect::<io::Result<_>>()?,
            ticker: Ticker::new(PERIOD, poll.registry(), Token(TICK))?,
            hall,
            number,
            poll,
            events: Events::with_capacity(EVENTS),
            clients: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            held_back: BTreeSet::new(),
            lanes: Lanes::default(),
            buffer: vec![0; BUFFER].into(),
            pause: None,
            round: Round::default(),
        })
    }

    /// Makes a [`Self::look`] that waits return when this descriptor becomes readable.
    pub(crate) fn watch(&self, endpoint: BorrowedFd<'_>) -> io::Result<()> {
        let raw = endpoint.as_raw_fd();
        let registry = self.poll.registry();
        registry.register(&mut SourceFd(&raw), Token(ENDPOINT), Interest::READABLE)
    }

    /// Ends [`Self::watch`].
    pub(crate) fn forget(&self, endpoint: BorrowedFd<'_>) -> io::Result<()> {
        let raw = endpoint.as_raw_fd();
        self.poll.registry().deregister(&mut SourceFd(&raw))
    }

    /// Polls the sockets. If none is ready, waits for this long, or until the next tick. True if
    /// the endpoint's descriptor is ready, or a signal has come.
    pub(crate) fn look(&mut self, wait: Duration, now: Seconds) -> io::Result<bool> {
        // If clients wait at a door, the kernel reports that only once.
        let wait = match self.pause {
            Some(_) => wait.min(PAUSE),
            None if self.doors.iter().any(|door| door.may_enter) => Duration::ZERO,
            None => wait,
        };
        let timeout = (wait < PERIOD).then_some(wait);
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            other => other?,
        }
        let first_client = FIRST_DOOR + self.doors.len();
        let mut is_called = false;
        for event in &self.events {
            let token = event.token().0;
            if let Some(number) = token.checked_sub(first_client) {
                // An event may arrive after its client has been closed.
                if let Some(Some(client)) = self.clients.get_mut(number) {
                    client.on_event(event);
                    wait_in(&mut self.queue, client, number);
                }
            } else if token == ENDPOINT {
                is_called = true;
            } else if token == TICK {
                self.ticker.on_tick();
            } else if let Some(door) = token.checked_sub(FIRST_DOOR) {
                self.doors[door].may_enter = true;
            }
        }
        self.let_in(now);
        for (stream, guest) in self.hall.arrivals(self.number) {
            self.admit(stream, guest);
        }
        self.go_round(now);
        self.let_go_on();
        Ok(is_called)
    }

    /// True if a client waits for its turn.
    pub(crate) fn has_turns(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Gives the next client its turn.
    pub(crate) fn turn(&mut self, desk: &mut Desk, now: Seconds) {
        let Some(number) = self.queue.pop_front() else {
            return;
        };
        // The client may have left since.
        let Some(Some(client)) = self.clients.get_mut(number) else {
            return;
        };
        client.is_queued = false;
        let mut serving = desk.serve(&self.hall);
        let after = client.turn(&mut serving, (&self.hall, &mut self.buffer), now);
        for partition in client.destinations() {
            self.lanes.queue(partition, number);
        }
        client.is_held_back = after == After::HeldBack;
        match client.is_held_back {
            true => self.held_back.insert(number),
            false => self.held_back.remove(&number),
        };
        match after {
            After::Turn => wait_in(&mut self.queue, client, number),
            After::Rest | After::HeldBack => {}
            After::Close => self.close(number),
        }
        self.let_go_on();
    }

    /// Gives turns to the clients that were held back and may send more.
    fn let_go_on(&mut self) {
        if self.held_back.is_empty() {
            return;
        }
        let floor = self.hall.floor();
        let go_on = match floor.has_room() {
            true => std::mem::take(&mut self.held_back),
            false => floor.next_of(self.number).into_iter().collect(),
        };
        for number in go_on {
            self.held_back.remove(&number);
            // The client may have left since, and another may have its place.
            if let Some(Some(client)) = self.clients.get_mut(number) {
                client.is_held_back = false;
                wait_in(&mut self.queue, client, number);
            }
        }
    }

    /// Makes lanes to the other partitions.
    pub(crate) fn on_start(&mut self, desk: &Desk) {
        self.lanes = desk.lanes();
    }

    /// True if errands may leave.
    pub(crate) fn has_errands(&self, now: Nanos) -> bool {
        self.lanes.has_work(now)
    }

    /// Takes answers to the clients that wait for them.
    pub(crate) fn on_news<T: Open>(&mut self, rpc: &mut Rpc<T, Desk>) {
        while let Some(news) = rpc.app_mut().next_news() {
            let (desk, mut cx) = rpc.with();
            let now = desk.time(cx.now());
            self.lanes.on_news(news, &mut cx, |asker, errand, end| {
                let client = self.clients.get_mut(asker.place).and_then(Option::as_mut);
                // The client may have left, and another may have its place.
                if let Some(client) = client.filter(|it| it.guest().number() == asker.client) {
                    client.on_end(errand, end, &mut desk.serve(&self.hall), now);
                    wait_in(&mut self.queue, client, asker.place);
                }
            });
        }
    }

    /// Connects to partitions, and sends errands to them.
    pub(crate) fn send_errands<T: Open>(&mut self, rpc: &mut Rpc<T, Desk>) {
        let now = rpc.now();
        while let Some((partition, endpoint)) = self.lanes.wish(now) {
            let address = rpc.nexus().address();
            let options = ConnectOptions {
                endpoint: Some(endpoint),
                ..ConnectOptions::default()
            };
            let session = rpc.connect_with(address, &options);
            self.lanes.on_connecting(partition, session.ok(), now);
        }
        let clients = &mut self.clients;
        self.lanes.send(&mut rpc.cx(), |place, partition| {
            let client = clients.get_mut(place)?.as_mut()?;
            let errand = client.next_errand(partition)?;
            let client = client.guest().number();
            Some((Asker { place, client }, errand))
        });
    }

    fn let_in(&mut self, now: Seconds) {
        if self.pause.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.pause = None;
        for door in 0..self.doors.len() {
            for _ in 0..MOST_LET_IN {
                if !self.doors[door].may_enter {
                    break;
                }
                match self.doors[door].door.accept() {
                    Ok((stream, address)) => self.on_client(stream, address, now),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.doors[door].may_enter = false;
                    }
                    // The client has already gone.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => {
                        self.pause = Some(Instant::now() + PAUSE);
                        break;
                    }
                }
            }
        }
    }

    fn on_client(
        &mut self,
        mut stream: Stream,
        address: Option<std::net::SocketAddr>,
        now: Seconds,
    ) {
        let Some(guest) = self.hall.on_client(address, now) else {
            // A new socket has room for the line.
            let _ = stream.write(TOO_MANY);
            return;
        };
        if let Some((stream, guest)) = self.hall.post(self.number, stream, guest) {
            self.admit(stream, guest);
        }
    }

    /// Serves a client on this thread.
    fn admit(&mut self, mut stream: Stream, guest: Arc<Guest>) {
        let number = self.free.pop().unwrap_or(self.clients.len());
        let token = Token(FIRST_DOOR + self.doors.len() + number);
        if stream.watch(self.poll.registry(), token).is_err() {
            self.free.push(number);
            return self.hall.on_client_gone(&guest);
        }
        if number == self.clients.len() {
            self.clients.push(None);
        }
        let seat = Seat {
            thread: self.number,
            place: number,
        };
        let client = Client::new(stream, guest, seat, &self.hall);
        let client = self.clients[number].insert(client);
        wait_in(&mut self.queue, client, number);
    }

    fn close(&mut self, number: usize) {
        if let Some(mut client) = self.clients[number].take() {
            self.held_back.remove(&number);
            client.stream().forget(self.poll.registry());
            client.on_close(&self.hall);
            self.hall.on_client_gone(client.guest());
            self.free.push(number);
        }
    }

    /// Visits some clients, so that each is visited once a second.
    fn go_round(&mut self, now: Seconds) {
        if self.round.next >= self.clients.len() {
            if self.round.begun == now {
                return;
            }
            self.round = Round {
                begun: now,
                next: 0,
            };
        }
        let end = self.clients.len().min(self.round.next + VISITED);
        for number in self.round.next..end {
            let Some(client) = &mut self.clients[number] else {
                continue;
            };
            match client.on_second(&self.hall, now) {
                Visit::Stay => {}
                Visit::Turn => wait_in(&mut self.queue, client, number),
                Visit::Close => self.close(number),
            }
        }
        self.round.next = end;
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        for number in 0..self.clients.len() {
            self.close(number);
        }
        for (_, guest) in self.hall.arrivals(self.number) {
            self.hall.on_client_gone(&guest);
        }
    }
}

/// Puts a client at the end of the queue, unless it is already in the queue.
fn wait_in(queue: &mut VecDeque<usize>, client: &mut Client, number: usize) {
    if !client.is_queued {
        client.is_queued = true;
        queue.push_back(number);
    }
}
