//! Sends packets to the data ports: random packets, genuine packets that are changed or repeated,
//! and forged packets about requests in flight, with the token of the attacker's own session.
//!
//! Invariant: it knows only the tokens of its own sessions.

use std::cell::RefCell;
use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use dunlin_core::transport::{Frame, TxItem};
use dunlin_core::{CallOptions, Nanos, PacketLen, Rng, Seen, Session, Tag, Tap};
use dunlin_nexus::{ConnectOptions, Nexus, Rpc};
use dunlin_testkit::forger::{Forger, KINDS};
use dunlin_transport::udp::Udp;
use dunlin_wire::{Header, ReqNum};
use harness::process::{Parent, Role};
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};

use super::Pace;
use crate::honest::OTHER;
use crate::words::{Deeds, Orders};

pub(crate) const ROLE: Role = Role::new("blaster", run);

/// Packets that are sent with one system call.
const BATCH: usize = 64;
/// Number of genuine packets that the blaster keeps.
const REMEMBERED: usize = 256;
/// Number of batches between two calls, which yield genuine packets.
const CALLS_EACH: u64 = 8;
/// Longest wait for the attacker's own calls and sessions, which it may have ruined.
const PATIENCE: Duration = Duration::from_millis(50);
/// Bytes of data in a forged packet.
const DATA_SIZE: u32 = 1_024;

/// Packets that the attacker's endpoint has sent.
type Sent = Rc<RefCell<Vec<Vec<u8>>>>;

/// Keeps the packets that the endpoint sends, tokens included, but with other data.
struct Capture(Sent);

impl Tap for Capture {
    fn received(&mut self, _: Seen, _: &Frame<'_>, _: PacketLen<'_>) {}

    fn sent(&mut self, at: Nanos, item: &TxItem) {
        let mut sent = self.0.borrow_mut();
        let mut packet = item.inline[..item.inline_len as usize].to_vec();
        packet.resize(packet.len() + item.data.len(), 0xA5);
        if sent.len() < REMEMBERED {
            sent.push(packet);
        } else {
            let place = usize::try_from(at.0).unwrap_or(0) % REMEMBERED;
            sent[place] = packet;
        }
    }
}

/// The attacker's own session.
struct Own {
    rpc: Rpc<Udp, ()>,
    server: SocketAddr,
    session: Option<Session>,
    sent: Sent,
}

struct Blaster {
    rng: Rng,
    forger: Forger,
    own: Own,
}

fn run(parent: &Parent) -> anyhow::Result<()> {
    let orders: Orders = parent.receive()?;
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut blaster = Blaster {
        rng: Rng::new(orders.seed),
        forger: Forger::new(orders.seed, DATA_SIZE),
        own: Own::new(&nexus, orders.target.address)?,
    };
    let sockets = orders.target.ports.iter().map(|port| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect((orders.target.address.ip(), *port))?;
        anyhow::Ok(socket)
    });
    let sockets: Vec<UdpSocket> = sockets.collect::<Result<_, _>>()?;
    anyhow::ensure!(!sockets.is_empty(), "the server has no data port");
    let mut deeds = Deeds::default();
    let mut pace = Pace::begin(orders.span, orders.rates.packets);
    let (mut due, mut batches) = (0, 0_u64);
    while let Some(part) = pace.next() {
        due += part;
        while due >= BATCH as u64 {
            if batches.is_multiple_of(CALLS_EACH) {
                blaster.own.call(&mut blaster.rng);
            }
            let packets: Vec<Vec<u8>> = (0..BATCH).map(|_| blaster.packet()).collect();
            let socket = &sockets[usize::try_from(batches % sockets.len() as u64)?];
            deeds.packets += send(socket, &packets);
            due -= BATCH as u64;
            batches += 1;
        }
    }
    parent.say(&deeds)
}

/// Sends packets with one system call; returns the number that the kernel took.
fn send(socket: &UdpSocket, packets: &[Vec<u8>]) -> u64 {
    let slices: Vec<[IoSlice<'_>; 1]> = packets.iter().map(|it| [IoSlice::new(it)]).collect();
    let mut control: Vec<_> = packets
        .iter()
        .map(|_| SendAncillaryBuffer::default())
        .collect();
    let mut messages: Vec<MMsgHdr<'_>> = slices
        .iter()
        .zip(&mut control)
        .map(|(slice, control)| MMsgHdr::new(slice, control))
        .collect();
    // A refused packet counts like a lost one.
    sendmmsg(socket, &mut messages, SendFlags::empty()).unwrap_or(0) as u64
}

impl Own {
    fn new(nexus: &Nexus, server: SocketAddr) -> anyhow::Result<Self> {
        let mut rpc: Rpc<Udp, ()> = nexus.endpoint(())?;
        let sent = Sent::default();
        let tap = Capture(Rc::clone(&sent));
        rpc.engine_mut().set_tap(Some(Box::new(tap)));
        Ok(Self {
            rpc,
            server,
            session: None,
            sent,
        })
    }

    /// Makes a call of random size, which yields genuine packets; first opens a session if there is
    /// none.
    fn call(&mut self, rng: &mut Rng) {
        let open = self
            .session
            .filter(|session| self.rpc.session_info(*session).is_ok());
        self.session = open.or_else(|| {
            let options = ConnectOptions {
                patience: PATIENCE,
                ..ConnectOptions::default()
            };
            self.rpc.connect_with(self.server, &options).ok()
        });
        let Some(session) = self.session else { return };
        let len = [24, 300, 2_000, 9_000][rng.next_u32() as usize % 4];
        let (Ok(request), Ok(response)) = (self.rpc.cx().copy(&vec![3; len]), self.rpc.buf(len))
        else {
            return;
        };
        let deadline = Some(PATIENCE.into());
        let options = CallOptions { deadline };
        // Only the call's packets matter, not whether it is refused or how it ends.
        let _ = self
            .rpc
            .call_with(session, OTHER, request, response, Tag(0), options);
        self.rpc.run_for(Duration::from_micros(200));
    }
}

impl Blaster {
    /// Makes the next packet.
    fn packet(&mut self) -> Vec<u8> {
        let choice = self.below(8);
        let genuine = self.genuine();
        match (choice, genuine) {
            (0 | 1, _) | (_, None) => self.noise(),
            (2..=4, Some(mut packet)) => {
                self.mutate(&mut packet);
                packet
            }
            (5 | 6, Some(packet)) => packet,
            (_, Some(packet)) => self.forged(&packet).unwrap_or(packet),
        }
    }

    fn genuine(&mut self) -> Option<Vec<u8>> {
        let place = self.rng.next_u32() as usize;
        let sent = self.own.sent.borrow();
        (!sent.is_empty()).then(|| sent[place % sent.len()].clone())
    }

    /// Makes random bytes. In half of the packets, the first byte is that of a readable header.
    fn noise(&mut self) -> Vec<u8> {
        let len = self.below(1_400);
        let mut packet = vec![0; len];
        for chunk in packet.chunks_mut(8) {
            let word = self.rng.next_u64().to_be_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        if let (Some(first), 0) = (packet.first_mut(), self.rng.next_u32() % 2) {
            *first = 0x10 | (*first % 6);
        }
        packet
    }

    /// Changes up to four bytes, and sometimes the length.
    fn mutate(&mut self, packet: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let (place, byte) = (self.below(packet.len().max(1)), self.below(256));
            // Most of the header's fields are near its start.
            let place = [place, place % 24][self.below(2)];
            if let Some(at) = packet.get_mut(place) {
                *at = byte.to_le_bytes()[0];
            }
        }
        match self.below(8) {
            0 => packet.truncate(self.below(packet.len().max(1))),
            1 => packet.extend(self.noise()),
            _ => {}
        }
    }

    /// Forges a packet about a request whose number is near a genuine packet's number.
    fn forged(&mut self, genuine: &[u8]) -> Option<Vec<u8>> {
        let header = Header::decode(genuine).ok()?;
        let kind = KINDS[self.below(KINDS.len())];
        let req = ReqNum(header.req.0.wrapping_add(self.rng.next_u32() % 3));
        let names = (header.session, header.token);
        Some(self.forger.packet(kind, names, req))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.next_u32() as usize % bound
    }
}
