//! The control thread: it waits in one epoll for the listeners, the connections and the endpoints'
//! commands. It passes their input to the plane, and carries out the plane's actions (design §9).
//!
//! It decides nothing about sessions. Invariants: nothing here blocks except the wait; all input is
//! read before the plane learns that time has passed, so that a process that was stopped does not
//! mistake unread heartbeats for silence; no error of one connection ends the thread.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use dunlin_control::{Action, Event, LinkId, Origin, Plane, PlaneCounters, Target};
use dunlin_core::ordered::Map;
use dunlin_core::{Clock, Nanos};
use dunlin_insight::writer::Page;
use dunlin_wire::control::{EndpointIndex, MAX_INSIGHT, Message};

use crate::clock::TscClock;
use crate::events;
use crate::ffi::{Epoll, Events, Interest, Ready, socket};
use crate::listeners::{Listeners, Next, TCP, UNIX};
use crate::mailbox::{Mailbox, Request};
use crate::nexus::InsightTcp;
use crate::publisher::values;
use crate::stream::{Broken, READ_TURN, Stream};
use crate::streams::{LINKS, Streams};

const BELL: u64 = 0;

/// The most connections that are accepted in one turn, before existing ones are served.
const ACCEPT_TURN: usize = 64;

/// The most turns for reading the bytes that came before the end of a connection.
const LAST_TURNS: usize = 64;

/// While input keeps coming, the plane learns the time after at most this many waits.
const MAX_WAITS: u32 = 16;

/// The state of the control thread.
pub(crate) struct Reactor {
    epoll: Epoll,
    clock: TscClock,
    plane: Plane<OwnedFd>,
    /// The address at which other processes connect, and from which this process connects to
    /// others.
    own: IpAddr,
    listeners: Listeners,
    streams: Streams,
    requests: Arc<Mailbox<Request>>,
    endpoints: Map<EndpointIndex, Arc<Mailbox<Event<OwnedFd>>>>,
    page: Option<Arc<Page>>,
    /// The part of the page that peers may read.
    insight_tcp: InsightTcp,
    /// The counters that were last published.
    shown: Option<PlaneCounters>,
    /// Broken connections that have not been ended yet; only [`Reactor::act`] ends them.
    broken: Vec<LinkId>,
    stopping: bool,
}

impl Reactor {
    /// Makes the state of a control thread that does not run yet.
    pub(crate) fn new(
        plane: Plane<OwnedFd>,
        tcp: TcpListener,
        unix: Option<UnixListener>,
        requests: Arc<Mailbox<Request>>,
        (page, insight_tcp): (Option<Arc<Page>>, InsightTcp),
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(requests.doorbell.as_raw_fd(), BELL, Interest::Read)?;
        let own = tcp.local_addr()?.ip();
        let listeners = Listeners::new(tcp, unix, &epoll)?;
        Ok(Self {
            own,
            epoll,
            clock: TscClock::new(),
            plane,
            listeners,
            streams: Streams::default(),
            requests,
            endpoints: Map::new(),
            page,
            insight_tcp,
            shown: None,
            broken: Vec::new(),
            stopping: false,
        })
    }

    /// The main loop of the control thread.
    pub(crate) fn run(mut self) {
        let mut events = Events::new();
        let mut waits = 0;
        while !self.stopping {
            let full = self.wait(&mut events);
            for ready in events.iter() {
                self.on_ready(ready);
            }
            self.serve_requests();
            waits = if full { waits + 1 } else { MAX_WAITS };
            if waits >= MAX_WAITS {
                waits = 0;
                self.on_time();
            } else {
                // Since the last beat, up to 64 connections may have had a turn of a tenth of a
                // millisecond each.
                self.plane.beat(self.clock.now());
            }
            self.act();
            self.publish();
        }
        let now = self.clock.now();
        self.plane.shut_down(now);
        self.act();
    }

    /// Publishes the counters if they have changed. Without that check, a reader over TCP, which
    /// makes this thread run, would find the block changed each time it reads.
    fn publish(&mut self) {
        let counters = *self.plane.counters();
        if let Some(page) = self.page.as_ref().filter(|_| self.shown != Some(counters)) {
            page.write_nexus(values(&counters.named()));
            self.shown = Some(counters);
        }
    }

    /// Waits until an event is ready or due. True if there may be more events than were reported.
    fn wait(&mut self, events: &mut Events) -> bool {
        let due = self.plane.next_wakeup().min(self.listeners.next_wakeup());
        let left = (due != Nanos::MAX).then(|| due.since(self.clock.now()).into());
        let bell = &self.requests.doorbell;
        let timeout = if bell.sleep() {
            left
        } else {
            Some(std::time::Duration::ZERO)
        };
        // The only possible errors are a wrong descriptor and wrong memory; both would be bugs.
        let waited = self.epoll.wait(events, timeout);
        debug_assert!(waited.is_ok(), "{waited:?}");
        bell.wake(events.iter().any(|ready| ready.token == BELL));
        events.is_partial()
    }

    fn on_ready(&mut self, ready: Ready) {
        match ready.token {
            BELL => {}
            TCP => self.accept(TCP),
            UNIX => self.accept(UNIX),
            token => self.on_stream(LinkId(token - LINKS), ready),
        }
    }

    fn on_time(&mut self) {
        let now = self.clock.now();
        self.listeners.on_time(&self.epoll, now);
        if now >= self.plane.next_wakeup() {
            self.plane.on_tick(now);
        }
    }

    /// Takes connections off a listener's queue.
    fn accept(&mut self, listener: u64) {
        for _ in 0..ACCEPT_TURN {
            let now = self.clock.now();
            match self.listeners.next(listener, &self.epoll, now) {
                Next::Connection(fd, origin) => self.on_accepted(fd, origin, listener == UNIX),
                Next::SentAway => self.plane.on_sent_away(),
                Next::Gone => {}
                Next::Nothing => return,
            }
        }
    }

    fn on_accepted(&mut self, fd: OwnedFd, origin: Origin, unix: bool) {
        if prepare(&fd, unix).is_err() {
            return;
        }
        let now = self.clock.now();
        let link = self.plane.on_accepted(origin, now);
        locate(&mut self.plane, link, fd.as_fd());
        if let Some(remote) = socket::remote_addr(fd.as_fd()) {
            self.plane.on_remote(link, remote.ip());
        }
        // A connection that the plane has evicted must be closed before the next is accepted, to
        // free its descriptor.
        self.act();
        self.enter(link, Stream::new(fd, false));
        // Reads a Hello that has already come, so that this connection is no longer half open when
        // the next one is accepted.
        self.on_stream(
            link,
            Ready {
                token: 0,
                readable: true,
                writable: false,
            },
        );
    }

    fn enter(&mut self, link: LinkId, stream: Stream) {
        if self.streams.enter(link, stream, &self.epoll).is_err() {
            self.broken.push(link);
        }
    }

    fn on_stream(&mut self, link: LinkId, ready: Ready) {
        let now = self.clock.now();
        let turn = self.streams.turn(link);
        let Some(stream) = self.streams.get_mut(link) else {
            return;
        };
        if stream.is_connecting() {
            if stream.on_connected().is_ok() {
                locate(&mut self.plane, link, stream.fd());
                if self.listeners.is_here(stream.fd()) {
                    self.plane.on_here(link);
                }
                self.plane.on_dialled(link, now);
            } else {
                self.broken.push(link);
            }
        } else if ready.readable
            && turn > 0
            && hand_over((stream, turn), &mut self.plane, link, now).is_err()
        {
            self.broken.push(link);
        }
        self.flush(link);
        self.act();
    }

    /// Ends a connection that a read or a write found broken. The messages that came before the end
    /// still count for its sessions, because the other side may have given its reason. Its
    /// questions do not count, because no answer would arrive, and a peer could leave thousands of
    /// questions.
    fn end(&mut self, link: LinkId) {
        let now = self.clock.now();
        let carries = self.plane.carries(link);
        if let Some(mut stream) = self.streams.remove(link).filter(|_| carries) {
            let plane = &mut self.plane;
            let mut take = |frame: &[u8], fds: &mut Vec<OwnedFd>| {
                match Message::decode(frame) {
                    // Only a Connect has descriptors; any others may belong to a later message.
                    Ok(message) if message.is_question() => {
                        if matches!(message, Message::Connect { .. }) {
                            fds.clear();
                        }
                    }
                    _ => plane.on_frame(link, frame, fds, now),
                }
                plane.has_link(link)
            };
            let more = |_: &usize| stream.read(READ_TURN, &mut take) == Ok(true);
            let _turns = (0..LAST_TURNS).take_while(more).count();
        }
        self.plane.on_closed(link, now);
    }

    /// Sends as much as the socket takes, and waits to send the rest.
    fn flush(&mut self, link: LinkId) {
        if self.streams.flush(link, &self.epoll).is_err() {
            self.broken.push(link);
        }
    }

    fn serve_requests(&mut self) {
        if !self.requests.doorbell.take() {
            return;
        }
        // Requests that come meanwhile ring again, so no endpoint can keep the thread from sending
        // heartbeats.
        for _ in 0..self.requests.len() {
            let Some(request) = self.requests.receive() else {
                return;
            };
            let now = self.clock.now();
            match request {
                Request::Plane(command) => {
                    events::on_command(&command);
                    self.plane.on_command(command, now);
                }
                Request::Add {
                    index,
                    uid,
                    events,
                    answer,
                } => {
                    let added = self.plane.add_endpoint(index, uid);
                    if let Ok(index) = added {
                        self.endpoints.insert(index, events);
                    }
                    // The endpoint waits for the answer, unless its thread has panicked.
                    let _ = answer.try_send(added);
                }
                Request::Remove(index) => {
                    self.plane.remove_endpoint(index, now);
                    self.endpoints.remove(&index);
                }
                Request::Serve(serving, answer) => {
                    self.plane.serve(serving);
                    let _ = answer.try_send(());
                }
                Request::Counters(answer) => {
                    let _ = answer.try_send(*self.plane.counters());
                }
                Request::Stop => self.stopping = true,
            }
        }
    }

    /// Carries out the plane's actions, and ends the connections that break meanwhile. Ending one
    /// leads to more actions, so this repeats until there are neither. It is a loop, because a peer
    /// decides how many connections break together, and with recursion each would take a level of
    /// the stack.
    fn act(&mut self) {
        loop {
            self.carry_out();
            let Some(link) = self.broken.pop() else {
                return;
            };
            self.end(link);
        }
    }

    /// Carries out the plane's actions once. Streams with new output are flushed at the end, so
    /// that several frames leave together.
    fn carry_out(&mut self) {
        let mut written = Vec::new();
        while let Some(action) = self.plane.next_action() {
            events::on_action(&action);
            match action {
                Action::Dial { link, to } => self.dial(link, &to),
                Action::Send { link, frame, fds } => {
                    if self.streams.queue(link, &frame, fds).is_err() {
                        self.broken.push(link);
                    }
                    if written.last() != Some(&link) {
                        written.push(link);
                    }
                }
                Action::Close { link } => {
                    if let Some(mut stream) = self.streams.remove(link) {
                        // Sends the goodbye, if the socket takes it without waiting.
                        let _ = stream.flush();
                    }
                }
                Action::Show { link, offset, len } => {
                    let mut part = [0; MAX_INSIGHT];
                    let part = &mut part[..usize::from(len)];
                    let open = self.insight_tcp == InsightTcp::Counters;
                    let page = self.page.as_ref().filter(|_| open);
                    let shown = page.map_or(0, |page| page.read_counters(offset, part));
                    self.plane.show(link, offset, &part[..shown]);
                }
                Action::Tell { endpoint, event } => {
                    if let Some(mailbox) = self.endpoints.get(&endpoint) {
                        mailbox.send(event);
                    }
                }
            }
        }
        for link in written {
            self.flush(link);
        }
    }

    fn dial(&mut self, link: LinkId, to: &Target) {
        let dialled = match to {
            Target::Tcp(address) => socket::dial_tcp(*address, self.own),
            Target::Unix(name) => socket::dial_unix(name.as_bytes()),
        };
        let unix = matches!(to, Target::Unix(_));
        let ready = dialled.and_then(|fd| prepare(&fd, unix).map(|()| fd));
        match ready {
            // Only processes of this user get descriptors.
            Ok(fd) if !unix || is_of_own_user(&fd) => self.enter(link, Stream::new(fd, true)),
            _ => {
                let now = self.clock.now();
                self.plane.on_closed(link, now);
            }
        }
    }
}

/// Gives the input of a stream to the plane, up to the number of bytes of one turn, and while the
/// plane wants it. True if there may be more.
fn hand_over(
    (stream, turn): (&mut Stream, usize),
    plane: &mut Plane<OwnedFd>,
    link: LinkId,
    now: Nanos,
) -> Result<bool, Broken> {
    stream.read(turn, |frame, fds| {
        events::on_frame(link, frame);
        plane.on_frame(link, frame, fds, now);
        plane.has_link(link)
    })
}

/// Passes the addresses of a connection to the plane.
fn locate(plane: &mut Plane<OwnedFd>, link: LinkId, fd: BorrowedFd<'_>) {
    if let Some(local) = socket::local_addr(fd) {
        plane.on_local(link, local);
    }
}

/// Sets the socket options whose defaults are unsuitable.
fn prepare(fd: &OwnedFd, unix: bool) -> io::Result<()> {
    socket::set_nonblocking(fd.as_fd())?;
    if unix {
        Ok(())
    } else {
        socket::send_at_once(fd.as_fd())
    }
}

fn is_of_own_user(fd: &OwnedFd) -> bool {
    socket::peer(fd.as_fd()).is_ok_and(|peer| peer.uid == socket::own_uid())
}

#[cfg(test)]
mod tests;
