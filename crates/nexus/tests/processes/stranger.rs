//! A peer that writes the control protocol byte by byte, so it can offer any address and leave out
//! messages that a real peer would send.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use dunlin_wire::control::{
    Accept, AttemptId, BootId, Connect, EndpointIndex, EndpointUid, Features, GoodbyeReason, Hello,
    Incarnation, InsightRead, Lookup, MAX_INSIGHT, Message, Offer, Offers, RefuseCode, SessionSide,
    TransportKind, frame_len,
};
use dunlin_wire::{ReqNum, SessionNum, Token};

use dunlin_testkit::stranger::frame;

use super::hostile::connect;

/// The stranger's number and token for its sessions.
pub(super) const NUMBER: SessionNum = SessionNum(7);
pub(super) const TOKEN: Token = Token(0x5eed);

/// Data bytes in a packet, as over loopback.
pub(super) const DATA_SIZE: u32 = 16_320;

/// A connection on which both sides have sent Hello.
pub(super) struct Stranger {
    stream: TcpStream,
    read: Vec<u8>,
    attempts: u64,
}

/// A session that the server has granted: its number and token in packets to the server, and the
/// port to which they go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) session: SessionNum,
    pub(super) token: Token,
    pub(super) port: u16,
}

impl Stranger {
    /// Sends Hello to a nexus, with these features.
    pub(super) fn greet(address: SocketAddr, features: Features) -> Self {
        let mut stranger = Self::connected(address);
        stranger.say(&hello(9, features));
        stranger
    }

    /// A process with a number of its own. It sends Hello and asks for a session whose packets go
    /// to `to`, without waiting for answers.
    pub(super) fn rush(address: SocketAddr, number: u64, to: SocketAddr) -> Self {
        let mut stranger = Self::connected(address);
        let mut said = frame(&hello(number, Features::default()));
        said.extend(stranger.request(to));
        // The server may already have sent it away.
        let _ = stranger.stream.write_all(&said);
        stranger
    }

    fn connected(address: SocketAddr) -> Self {
        Self {
            stream: connect(address),
            read: Vec::new(),
            attempts: 0,
        }
    }

    /// Waits for the answer to the last request: true if that is a Goodbye because of too many
    /// connections, and false if it is a session.
    pub(super) fn is_sent_away(&mut self) -> bool {
        let reason = GoodbyeReason::TooManyConnections;
        loop {
            match Message::decode(&self.next()).unwrap() {
                Message::Accept(_) => return false,
                Message::Goodbye { reason: given } if given == reason => return true,
                Message::HelloAck(_) | Message::Found(_) | Message::Heartbeat { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Whether the server still answers the stranger.
    pub(super) fn is_alive(&mut self) -> bool {
        self.say(&Message::Heartbeat { counter: 1 });
        loop {
            match Message::decode(&self.next()).unwrap() {
                Message::HeartbeatAck { counter: 1 } => return true,
                Message::Goodbye { .. } => return false,
                _ => {}
            }
        }
    }

    pub(super) fn say(&mut self, message: &Message<'_>) {
        self.stream.write_all(&frame(message)).unwrap();
    }

    /// Asks for a session whose packets go to `to`, and waits for the answer.
    pub(super) fn ask(&mut self, to: SocketAddr) -> Result<Granted, RefuseCode> {
        self.begin(to);
        self.finish()
    }

    /// Asks for a session whose packets go to `to`. Returns the number of bytes that it sent.
    pub(super) fn begin(&mut self, to: SocketAddr) -> usize {
        let request = self.request(to);
        self.stream.write_all(&request).unwrap();
        request.len()
    }

    /// The messages that ask for a session.
    fn request(&mut self, to: SocketAddr) -> Vec<u8> {
        self.attempts += 1;
        let attempt = AttemptId(self.attempts);
        let target = EndpointIndex(0);
        let lookup = frame(&Message::Lookup(Lookup { attempt, target }));
        let offer = offer_of(to);
        let offers = [Offer {
            kind: TransportKind::UDP,
            fds: 0,
            bytes: &offer,
        }];
        let connect = frame(&Message::Connect(Connect {
            attempt,
            target,
            client: SessionSide {
                endpoint: EndpointUid([9; 16]),
                session: NUMBER,
                token: TOKEN,
                window_log2: 3,
                credits: 32,
                data_size: DATA_SIZE,
                max_message: 1 << 24,
                first_req: ReqNum(0),
                offers: Offers::new(&offers).unwrap(),
            },
        }));
        [lookup, connect].concat()
    }

    /// Waits for the answer to the last request.
    pub(super) fn finish(&mut self) -> Result<Granted, RefuseCode> {
        let attempt = AttemptId(self.attempts);
        loop {
            let bytes = self.next();
            match Message::decode(&bytes).unwrap() {
                Message::Accept(accept) if accept.attempt == attempt => {
                    return Ok(granted(&accept));
                }
                Message::Refuse(refuse) if refuse.attempt == attempt => return Err(refuse.code),
                Message::Heartbeat { counter } => self.say(&Message::HeartbeatAck { counter }),
                _ => {}
            }
        }
    }

    /// All bytes of counters that the server shows.
    pub(super) fn read_counters(&mut self) -> Vec<u8> {
        let mut found = Vec::new();
        for offset in (0..).step_by(MAX_INSIGHT) {
            let len = u16::try_from(MAX_INSIGHT).unwrap();
            self.say(&Message::InsightRead(InsightRead { offset, len }));
            loop {
                match Message::decode(&self.next()).unwrap() {
                    Message::Heartbeat { counter } => self.say(&Message::HeartbeatAck { counter }),
                    Message::Insight(part) if part.bytes.len() < MAX_INSIGHT => {
                        found.extend_from_slice(part.bytes);
                        return found;
                    }
                    Message::Insight(part) => break found.extend_from_slice(part.bytes),
                    _ => {}
                }
            }
        }
        unreachable!("a file ends")
    }

    /// Answers the heartbeats that have come. Returns the other messages, as their frames.
    pub(super) fn answer_heartbeats(&mut self) -> Vec<Vec<u8>> {
        self.stream.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.stream.set_nonblocking(false).unwrap();
        self.read.extend_from_slice(&bytes[..count]);
        let mut others = Vec::new();
        while let Some(len) = frame_len(&self.read).unwrap() {
            let frame: Vec<u8> = self.read.drain(..len).collect();
            match Message::decode(&frame) {
                Ok(Message::Heartbeat { counter }) => {
                    self.say(&Message::HeartbeatAck { counter });
                }
                _ => others.push(frame),
            }
        }
        others
    }

    /// Answers heartbeats, too. Returns whether the server has refused a request because all places
    /// are taken.
    pub(super) fn was_refused_as_busy(&mut self) -> bool {
        let frames = self.answer_heartbeats();
        frames.iter().any(|frame| match Message::decode(frame) {
            Ok(Message::Refuse(refuse)) => refuse.code == RefuseCode::Busy,
            _ => false,
        })
    }

    /// The next message, as its frame.
    fn next(&mut self) -> Vec<u8> {
        loop {
            if let Some(len) = frame_len(&self.read).unwrap() {
                return self.read.drain(..len).collect();
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).unwrap();
            assert_ne!(count, 0, "the server has closed the connection");
            self.read.extend_from_slice(&bytes[..count]);
        }
    }
}

fn hello(incarnation: u64, features: Features) -> Message<'static> {
    Message::Hello(Hello {
        min_version: 1,
        max_version: 1,
        features,
        boot_id: BootId([5; 16]),
        incarnation: Incarnation(incarnation),
        port: 0,
        unix_name: "",
    })
}

/// The UDP offer of an endpoint at this address.
fn offer_of(to: SocketAddr) -> Vec<u8> {
    let IpAddr::V4(ip) = to.ip() else {
        panic!("{to} is not an IPv4 address");
    };
    let mut offer = vec![1];
    offer.extend(DATA_SIZE.to_le_bytes());
    offer.extend(65_535_u32.to_le_bytes());
    offer.extend([1, 4]);
    offer.extend(to.port().to_le_bytes());
    offer.extend(ip.octets());
    offer
}

fn granted(accept: &Accept<'_>) -> Granted {
    let server = &accept.server;
    let offer = server.offers.as_slice()[0].bytes;
    Granted {
        session: server.session,
        token: server.token,
        port: u16::from_le_bytes([offer[11], offer[12]]),
    }
}
