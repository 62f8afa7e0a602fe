//! Several processes with their planes, endpoints that answer requests, and streams between them
//! that delay frames but lose none; all in simulated time and from one seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

use dunlin_core::{Account, CloseReason, Nanos, Rng};
use dunlin_wire::control::{BootId, EndpointIndex, EndpointUid, Incarnation, Serving};
use dunlin_wire::{SessionNum, Token};

use super::endpoints::Seen;
use super::proofs::Caution;
use crate::{
    Action, Command, Identity, LinkId, Origin, PeerIdentity, Plane, PlaneConfig, SessionKey, Target,
};

pub(super) struct Node {
    pub(super) plane: Option<Plane<u64>>,
    pub(super) address: SocketAddr,
    pub(super) host: u8,
    pub(super) seen: BTreeMap<SessionKey, Seen>,
    /// Leaves requests for a session, and inquiries, unanswered.
    pub(super) mute: bool,
    /// The sessions of the inquiries that its endpoints have got.
    pub(super) inquired: Vec<SessionKey>,
    /// The answers to inquiries that its endpoints have got.
    pub(super) accounts: Vec<Account>,
    /// The services that peers have announced, with session and process.
    pub(super) served: Vec<(SessionKey, Incarnation, Serving)>,
    pub(super) caution: Caution,
    /// Descriptors that arrived.
    pub(super) fds: Vec<u64>,
    /// The peers about which its endpoints got events.
    pub(super) met: Vec<PeerIdentity>,
    /// Until when the process neither reads nor runs.
    pub(super) stopped_until: Nanos,
    sessions: u32,
    /// The node treats each process as one of its own host and user, and sends it the full Hello.
    pub(super) lies: bool,
    /// The user of the process.
    pub(super) user: u32,
    /// `Some(true)`: the node returns no nonce over UNIX sockets; `Some(false)`: none over TCP.
    pub(super) keeps_nonces: Option<bool>,
}

struct End {
    node: usize,
    link: LinkId,
    /// This end still reports events and accepts frames.
    open: bool,
    inbox: VecDeque<(Nanos, Vec<u8>, Vec<u64>)>,
    /// When this end sees the end of the stream.
    eof: Option<Nanos>,
}

pub(super) struct Stream {
    ends: [End; 2],
    /// For each end, whether frames towards it are held back.
    pub(super) cut: [bool; 2],
}

pub(super) struct World {
    pub(super) now: Nanos,
    pub(super) nodes: Vec<Node>,
    pub(super) streams: Vec<Stream>,
    pub(super) rng: Rng,
    pub(super) config: PlaneConfig,
    /// UNIX sockets cannot be reached, as between containers.
    pub(super) no_unix: bool,
    /// A node that dialled, its link, and whether the peer is on the same host; `None`: no peer.
    dialled: Vec<(usize, LinkId, Option<bool>)>,
    delays: Nanos,
    pub(super) last_fd: u64,
    incarnations: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: Nanos(1),
            nodes: Vec::new(),
            streams: Vec::new(),
            rng: Rng::new(seed),
            config: PlaneConfig::default(),
            no_unix: false,
            dialled: Vec::new(),
            delays: Nanos::from_micros(100),
            last_fd: 0,
            incarnations: 0,
        }
    }

    pub(super) fn address(node: usize) -> SocketAddr {
        let port = 31_850 + u16::try_from(node).unwrap();
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// A process on a host, with this number of endpoints.
    pub(super) fn node(&mut self, host: u8, endpoints: u16) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node {
            plane: None,
            address: Self::address(index),
            host,
            seen: BTreeMap::new(),
            mute: false,
            inquired: Vec::new(),
            accounts: Vec::new(),
            served: Vec::new(),
            caution: Caution::default(),
            fds: Vec::new(),
            met: Vec::new(),
            stopped_until: Nanos::ZERO,
            sessions: 0,
            lies: false,
            user: 0,
            keeps_nonces: None,
        });
        self.start(index, endpoints);
        index
    }

    /// Starts a process, for the first time or again.
    pub(super) fn start(&mut self, index: usize, endpoints: u16) {
        self.incarnations += 1;
        let node = &mut self.nodes[index];
        let us = Identity {
            boot_id: BootId([node.host; 16]),
            incarnation: Incarnation(self.incarnations),
            port: node.address.port(),
            unix_name: format!("\0dunlin-{index}"),
        };
        let mut plane = Plane::new(self.config, us, self.rng.next_u64());
        for endpoint in 0..endpoints {
            let mut uid = [0; 16];
            uid[..8].copy_from_slice(&self.incarnations.to_le_bytes());
            uid[8..10].copy_from_slice(&endpoint.to_le_bytes());
            plane.add_endpoint(None, EndpointUid(uid)).unwrap();
        }
        node.plane = Some(plane);
    }

    /// Kills the process; its kernel closes its streams.
    pub(super) fn kill(&mut self, index: usize) {
        self.nodes[index].plane = None;
        self.nodes[index].seen.clear();
        for stream in 0..self.streams.len() {
            for side in 0..2 {
                if self.streams[stream].ends[side].node == index {
                    self.hang_up(stream, side);
                }
            }
        }
    }

    pub(super) fn plane(&mut self, index: usize) -> &mut Plane<u64> {
        self.nodes[index].plane.as_mut().expect("the process runs")
    }

    /// A fresh session of an endpoint.
    pub(super) fn session(&mut self, node: usize, endpoint: u16) -> SessionKey {
        let token = Token(self.rng.next_u32());
        let sessions = &mut self.nodes[node].sessions;
        *sessions += 1;
        SessionKey {
            endpoint: EndpointIndex(endpoint),
            session: SessionNum(*sessions),
            token,
        }
    }

    pub(super) fn connect(
        &mut self,
        from: usize,
        to: usize,
        target: EndpointIndex,
        patience: Nanos,
    ) -> SessionKey {
        let key = self.session(from, 0);
        self.nodes[from].seen.insert(key, Seen::Connecting);
        let deadline = self.now + patience;
        let command = Command::Connect {
            key,
            to: vec![Self::address(to)],
            target,
            deadline,
        };
        let now = self.now;
        self.plane(from).on_command(command, now);
        self.settle();
        key
    }

    pub(super) fn disconnect(&mut self, node: usize, key: SessionKey) {
        let now = self.now;
        let seen = self.nodes[node].seen.remove(&key);
        let command = match seen {
            Some(Seen::Connecting) => Command::Abandon { key },
            _ => Command::Disconnect {
                key,
                reason: CloseReason::Disconnected,
            },
        };
        self.plane(node).on_command(command, now);
        self.settle();
    }

    pub(super) fn seen(&self, node: usize, key: SessionKey) -> Option<Seen> {
        self.nodes[node].seen.get(&key).copied()
    }

    /// Sessions that endpoints of this node hold open.
    pub(super) fn open(&self, node: usize) -> BTreeSet<SessionKey> {
        let is_open = |seen: &Seen| matches!(seen, Seen::Open { .. });
        self.nodes[node]
            .seen
            .iter()
            .filter(|(_, seen)| is_open(seen))
            .map(|(key, _)| *key)
            .collect()
    }

    /// Opens a stream to a node. The other end has no plane: the caller writes there.
    pub(super) fn raw(&mut self, to: usize, unix: bool) -> usize {
        let origin = if unix {
            Origin::Process(0)
        } else {
            Origin::OwnUser
        };
        self.raw_from(to, origin)
    }

    /// Like [`Self::raw`], with an origin.
    pub(super) fn raw_from(&mut self, to: usize, origin: Origin) -> usize {
        let now = self.now;
        let link = self.plane(to).on_accepted(origin, now);
        self.streams
            .push(Stream::between((usize::MAX, LinkId(0)), (to, link)));
        self.settle();
        self.streams.len() - 1
    }

    /// Writes to a raw stream.
    pub(super) fn write(&mut self, stream: usize, frame: Vec<u8>) {
        let at = self.now + self.delays;
        self.streams[stream].ends[1]
            .inbox
            .push_back((at, frame, Vec::new()));
    }

    /// True if the plane's end of a raw stream is closed.
    pub(super) fn is_closed(&self, stream: usize) -> bool {
        !self.streams[stream].ends[1].open
    }

    /// Frames that a plane has sent to a raw stream.
    pub(super) fn read(&mut self, stream: usize) -> Vec<Vec<u8>> {
        self.streams[stream].ends[0]
            .inbox
            .drain(..)
            .map(|(_, frame, _)| frame)
            .collect()
    }

    /// Lets this span of time pass.
    pub(super) fn run(&mut self, span: Nanos) {
        let end = self.now + span;
        loop {
            self.settle();
            let next = self.next_event();
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn next_event(&self) -> Nanos {
        let frames = self.streams.iter().flat_map(|stream| {
            stream
                .ends
                .iter()
                .enumerate()
                .filter(|(_, end)| end.open && end.node != usize::MAX)
                .map(|(side, end)| {
                    let frame = end.inbox.front().map(|(at, ..)| *at);
                    let next = if stream.cut[side] {
                        None
                    } else {
                        frame.or(end.eof)
                    };
                    next.unwrap_or(Nanos::MAX)
                        .max(self.nodes[end.node].stopped_until)
                })
        });
        let ticks = self
            .nodes
            .iter()
            .filter_map(|node| Some(node.plane.as_ref()?.next_wakeup().max(node.stopped_until)));
        frames.chain(ticks).min().unwrap_or(Nanos::MAX)
    }

    /// Handles everything that is due now: arrivals first, then time.
    fn step(&mut self) {
        for stream in 0..self.streams.len() {
            for side in 0..2 {
                self.deliver(stream, side);
            }
        }
        let now = self.now;
        for node in &mut self.nodes {
            if let (Some(plane), true) = (&mut node.plane, node.stopped_until <= now) {
                plane.on_tick(now);
            }
        }
        self.settle();
    }

    fn deliver(&mut self, stream: usize, side: usize) {
        loop {
            let end = &mut self.streams[stream].ends[side];
            let (node, link) = (end.node, end.link);
            if !end.open || node == usize::MAX || self.streams[stream].cut[side] {
                return;
            }
            if self.nodes[node].stopped_until > self.now {
                return;
            }
            let end = &mut self.streams[stream].ends[side];
            let due = |at: &Nanos| *at <= self.now;
            if end.inbox.front().is_some_and(|(at, ..)| due(at)) {
                let (_, frame, mut fds) = end.inbox.pop_front().unwrap();
                let now = self.now;
                if let Some(plane) = &mut self.nodes[node].plane {
                    plane.on_frame(link, &frame, &mut fds, now);
                }
                assert!(
                    fds.is_empty(),
                    "a plane does not take the descriptors of a valid message"
                );
                self.settle();
            } else if end.inbox.is_empty() && end.eof.as_ref().is_some_and(due) {
                end.open = false;
                let now = self.now;
                if let Some(plane) = &mut self.nodes[node].plane {
                    plane.on_closed(link, now);
                }
                self.settle();
            } else {
                return;
            }
        }
    }

    /// Carries out the planes' actions until there are none.
    pub(super) fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for index in 0..self.nodes.len() {
                if self.nodes[index].stopped_until > self.now {
                    continue;
                }
                while let Some(action) = self.nodes[index]
                    .plane
                    .as_mut()
                    .and_then(Plane::next_action)
                {
                    quiet = false;
                    self.act(index, action);
                }
            }
            for (node, link, made) in std::mem::take(&mut self.dialled) {
                quiet = false;
                let now = self.now;
                if let Some(plane) = &mut self.nodes[node].plane {
                    if let Some(is_here) = made {
                        if is_here {
                            plane.on_here(link);
                        }
                        plane.on_dialled(link, now)
                    } else {
                        plane.on_closed(link, now)
                    }
                }
            }
            if quiet {
                let planes = self.nodes.iter().filter_map(|node| node.plane.as_ref());
                for plane in planes {
                    plane.check_times();
                    plane.check_sessions();
                }
                return;
            }
        }
    }

    fn act(&mut self, index: usize, action: Action<u64>) {
        match action {
            Action::Dial { link, to } => {
                let made = self.dial(index, link, &to);
                self.dialled.push((index, link, made));
            }
            Action::Send { link, frame, fds } => self.send(index, link, frame, fds),
            Action::Close { link } => {
                if let Some((stream, side)) = self.stream_of(index, link) {
                    self.hang_up(stream, side);
                }
            }
            Action::Show { link, offset, len } => {
                let bytes = vec![7; usize::from(len)];
                self.plane(index).show(link, offset, &bytes);
            }
            Action::Tell { endpoint, event } => self.tell(index, endpoint, event),
        }
    }

    /// Dials. Returns whether the other end is on this host; `None` if it cannot be reached.
    fn dial(&mut self, from: usize, link: LinkId, to: &Target) -> Option<bool> {
        let (host, now) = (self.nodes[from].host, self.now);
        let (unix, found) = match to {
            Target::Tcp(address) => (
                false,
                self.nodes.iter().position(|node| node.address == *address),
            ),
            Target::Unix(name) => {
                let index = name
                    .strip_prefix("\0dunlin-")
                    .and_then(|rest| rest.parse().ok());
                let here = index.filter(|i: &usize| self.nodes[*i].host == host);
                (true, here.filter(|_| !self.no_unix))
            }
        };
        let index = found?;
        let origin = self.origin(from, index, unix)?;
        let node = &mut self.nodes[index];
        let is_here = node.host == host;
        let plane = node.plane.as_mut()?;
        let theirs = plane.on_accepted(origin, now);
        if !unix {
            plane.on_remote(theirs, Ipv4Addr::LOCALHOST.to_ipv6_mapped().into());
        }
        self.streams
            .push(Stream::between((from, link), (index, theirs)));
        Some(is_here)
    }

    fn send(&mut self, index: usize, link: LinkId, frame: Vec<u8>, fds: Vec<u64>) {
        let Some((stream, side)) = self.stream_of(index, link) else {
            return;
        };
        if self.withholds(index, link, &frame) {
            return;
        }
        let delay = Nanos(1 + u64::from(self.rng.below(1 + u32::try_from(self.delays.0).unwrap())));
        let other = &mut self.streams[stream].ends[1 - side];
        let after = other.inbox.back().map_or(Nanos::ZERO, |(at, ..)| *at);
        other
            .inbox
            .push_back((after.max(self.now + delay), frame, fds));
    }

    fn stream_of(&self, node: usize, link: LinkId) -> Option<(usize, usize)> {
        self.streams.iter().enumerate().find_map(|(index, stream)| {
            let is_it = |end: &End| end.node == node && end.link == link && end.open;
            stream.ends.iter().position(is_it).map(|side| (index, side))
        })
    }

    /// Closes one end. The other reads the frames that were sent, then sees the stream's end.
    fn hang_up(&mut self, stream: usize, side: usize) {
        let now = self.now;
        let ends = &mut self.streams[stream].ends;
        ends[side].open = false;
        let last = ends[1 - side].inbox.back().map_or(now, |(at, ..)| *at);
        ends[1 - side].eof.get_or_insert(last + Nanos(1));
    }
}

impl Stream {
    fn between(one: (usize, LinkId), other: (usize, LinkId)) -> Self {
        let end = |(node, link)| End {
            node,
            link,
            open: true,
            inbox: VecDeque::new(),
            eof: None,
        };
        Self {
            ends: [end(one), end(other)],
            cut: [false; 2],
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.ends.iter().any(|end| end.open)
    }
}
