//! A process that writes bytes to a control port, without a nexus: an attacker without a session,
//! or with an incomplete one.
//!
//! Invariant: no code here waits for an answer, so a server that does not answer delays no
//! attacker. Used by tests of nexus, and by the attackers of `cargo xtask hostile`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use dunlin_wire::control::{
    AttemptId, BootId, EndpointIndex, Features, Hello, Incarnation, InsightRead, Lookup, MAX_FRAME,
    MAX_INSIGHT, Message,
};

/// The most bytes that a [`Flood`] offers to a connection at once.
pub const MOST_AT_ONCE: usize = 64 << 10;

/// The most bytes of answers that a [`Flood`] reads at once.
const ANSWERS: usize = 256 << 10;

/// The encoded form of a message.
///
/// # Panics
/// The message is longer than the protocol allows.
pub fn frame(message: &Message<'_>) -> Vec<u8> {
    let mut out = [0; MAX_FRAME];
    let length = message.encode(&mut out);
    let length = length.expect("the caller's message is short");
    out[..length].to_vec()
}

/// The first message of a process that speaks only this version.
pub fn hello(version: u8) -> Message<'static> {
    Message::Hello(Hello {
        min_version: version,
        max_version: version,
        features: Features::default(),
        boot_id: BootId([5; 16]),
        incarnation: Incarnation(9),
        port: 0,
        unix_name: "",
    })
}

/// A question for any endpoint.
pub fn lookup() -> Vec<u8> {
    let (attempt, target) = (AttemptId(1), EndpointIndex::ANY);
    frame(&Message::Lookup(Lookup { attempt, target }))
}

/// A question for the largest number of counters that fit into an answer.
///
/// # Panics
/// Never: the constant fits.
pub fn insight_read() -> Vec<u8> {
    let len = u16::try_from(MAX_INSIGHT).expect("a constant");
    frame(&Message::InsightRead(InsightRead { offset: 0, len }))
}

/// A heartbeat, which its receiver must acknowledge.
pub fn heartbeat() -> Vec<u8> {
    frame(&Message::Heartbeat { counter: 1 })
}

/// A connection that has said hello and does not block.
///
/// # Errors
/// The server cannot be reached, or has closed it.
pub fn greeted(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(&frame(&hello(1)))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Connections that ask the same question endlessly.
#[derive(Debug)]
pub struct Flood {
    /// The connections, with the number of bytes that each has taken.
    streams: Vec<(TcpStream, usize)>,
    /// The server to connect to again after it has closed a connection.
    again: Option<SocketAddr>,
    question: usize,
    /// The question, repeated. A connection that has taken part of a question continues at that
    /// place.
    many: Box<[u8]>,
    answers: Vec<u8>,
}

impl Flood {
    /// Asks over this number of connections, and replaces each connection that the server closes.
    /// The server closes connections that acknowledge no heartbeat.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn lasting(server: SocketAddr, count: usize, question: &[u8]) -> io::Result<Self> {
        let streams = (0..count)
            .map(|_| greeted(server))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            again: Some(server),
            ..Self::new(streams, question)
        })
    }

    /// Asks over these connections.
    pub fn new(streams: Vec<TcpStream>, question: &[u8]) -> Self {
        Self {
            streams: streams.into_iter().map(|stream| (stream, 0)).collect(),
            again: None,
            question: question.len(),
            many: question.repeat(MOST_AT_ONCE).into_boxed_slice(),
            answers: vec![0; ANSWERS],
        }
    }

    /// Sends up to `most` bytes of questions over each connection and, if `reads`, reads answers.
    /// Returns the number of bytes that the connections took.
    pub fn turn(&mut self, reads: bool, most: usize) -> usize {
        let mut taken = 0;
        for (stream, sent) in &mut self.streams {
            let came = if reads {
                stream.read(&mut self.answers)
            } else {
                Ok(1)
            };
            let at = *sent % self.question;
            let some = &self.many[at..at + most.min(MOST_AT_ONCE)];
            let went = stream.write(some);
            let written = *went.as_ref().unwrap_or(&0);
            *sent += written;
            taken += written;
            let has_ended = |result: &io::Result<usize>| match result {
                Ok(count) => *count == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            if let Some(server) = self.again
                && (has_ended(&came) || has_ended(&went))
                && let Ok(fresh) = greeted(server)
            {
                (*stream, *sent) = (fresh, 0);
            }
        }
        taken
    }
}
