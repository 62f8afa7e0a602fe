//! The messages of `parallel` over TCP: a connection for each session, without Nagle's algorithm.
//! One thread on each side serves all connections and never waits in the kernel. As over the
//! library, each message in flight has memory of its own at the client, where a program would have
//! its data; the server has one buffer for each connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{METRICS, Messages, WARM_UP};
use crate::baselines::sys;
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::subject::ANSWER;
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Sends large messages over TCP connections.
pub(crate) const CALL: Role = Role::new("tcp-call", call);

/// Answers them.
pub(crate) const ANSWER_CALLS: Role = Role::new("tcp-answer", answer);

/// Size of the sockets' buffers in one half of the span; in the other half, the system chooses it.
const BUFFERS: i32 = 4 << 20;

/// Messages over TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp(pub(super) Messages);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Setting {
    messages: Messages,
    /// Size of each socket's buffers. With `None`, the system chooses it.
    buffers: Option<i32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Params {
    setting: Setting,
    server: SocketAddr,
    span: Duration,
}

impl Probe for Tcp {
    fn name(&self) -> &'static str {
        "TCP"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS[..1]
    }

    fn overhead(&self) -> Duration {
        2 * (crate::harness::subject::SET_UP + WARM_UP)
    }

    /// Measures with each of the two buffer sizes for half of the span, and reports the better
    /// result.
    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let mut best = 0.0_f64;
        for buffers in [None, Some(BUFFERS)] {
            let setting = Setting {
                messages: self.0,
                buffers,
            };
            best = best.max(goodput(setting, span / 2)?);
        }
        Ok(vec![best].into())
    }
}

fn goodput(setting: Setting, span: Duration) -> anyhow::Result<f64> {
    let seats = Seats::pick();
    let mut server = Process::spawn(ANSWER_CALLS, seats.server, &setting)?;
    let params = Params {
        setting,
        server: server.receive(patience(Duration::ZERO))?,
        span,
    };
    let mut client = Process::spawn(CALL, seats.client, &params)?;
    client.receive(patience(span + WARM_UP))
}

fn prepare(stream: TcpStream, buffers: Option<i32>) -> anyhow::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    if let Some(bytes) = buffers {
        sys::set_buffers(&stream, bytes)?;
    }
    Ok(stream)
}

/// One direction of a stream: it sends as many bytes as the system accepts, or receives as many as
/// the system has.
#[derive(Debug, Default)]
struct Part {
    /// Bytes of the current message that have moved.
    moved: usize,
}

/// How far a message has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moved {
    Whole,
    Part,
    /// The other side has closed the stream.
    End,
}

impl Part {
    fn write(&mut self, stream: &mut TcpStream, message: &[u8]) -> anyhow::Result<Moved> {
        let moved = stream.write(&message[self.moved..]);
        self.take(moved, message.len())
    }

    fn read(&mut self, stream: &mut TcpStream, message: &mut [u8]) -> anyhow::Result<Moved> {
        let moved = stream.read(&mut message[self.moved..]);
        self.take(moved, message.len())
    }

    fn take(&mut self, moved: std::io::Result<usize>, len: usize) -> anyhow::Result<Moved> {
        match moved {
            Ok(0) => return Ok(Moved::End),
            Ok(bytes) => self.moved += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Moved::End),
            Err(error) => return Err(error.into()),
        }
        if self.moved < len {
            return Ok(Moved::Part);
        }
        self.moved = 0;
        Ok(Moved::Whole)
    }
}

/// A connection of the client.
#[derive(Debug)]
struct Caller {
    stream: TcpStream,
    /// The memory of the messages that may be in flight, which they use in turn.
    messages: Vec<Message>,
    sent: u64,
    answered: u64,
    out: Part,
    back: Part,
}

/// The memory of a message.
#[derive(Debug)]
struct Message {
    request: Vec<u8>,
    response: Vec<u8>,
}

/// The memory of the message with this number.
fn of_number(messages: &mut [Message], number: u64) -> &mut Message {
    let place = number % messages.len() as u64;
    &mut messages[usize::try_from(place).expect("messages in flight are few")]
}

impl Caller {
    /// Moves as much as possible; returns how many messages were answered.
    fn turn(&mut self, messages: Messages) -> anyhow::Result<u64> {
        if self.sent < self.answered + self.messages.len() as u64 {
            let request = &mut of_number(&mut self.messages, self.sent).request;
            if self.out.moved == 0 {
                work::mark(request, self.sent);
            }
            let moved = self.out.write(&mut self.stream, request)?;
            self.sent += u64::from(moved == Moved::Whole);
        }
        let response = &mut of_number(&mut self.messages, self.answered).response;
        if self.back.read(&mut self.stream, response)? != Moved::Whole {
            return Ok(0);
        }
        ensure!(
            messages.is_answer(response, self.answered),
            "a wrong answer to message {}",
            self.answered
        );
        self.answered += 1;
        Ok(1)
    }
}

/// Sends messages and reports their goodput.
///
/// # Errors
/// A stream fails, or an answer is wrong.
pub(crate) fn call(parent: &Parent) -> anyhow::Result<()> {
    let Params {
        setting: Setting { messages, buffers },
        server,
        span,
    } = parent.receive()?;
    let mut callers = (0..messages.sessions)
        .map(|session| {
            let memory = || Message {
                request: vec![0; messages.size as usize],
                response: vec![0; messages.answer()],
            };
            Ok(Caller {
                stream: prepare(TcpStream::connect(server)?, buffers)?,
                messages: std::iter::repeat_with(memory)
                    .take(messages.of_session(session))
                    .collect(),
                sent: 0,
                answered: 0,
                out: Part::default(),
                back: Part::default(),
            })
        })
        .collect::<anyhow::Result<Vec<Caller>>>()?;
    let mut run_for = |span: Duration| -> anyhow::Result<f64> {
        let (begin, mut count) = (Instant::now(), 0);
        while begin.elapsed() < span {
            for caller in &mut callers {
                count += caller.turn(messages)?;
            }
        }
        Ok(messages.gbps(count, begin.elapsed()))
    };
    run_for(WARM_UP)?;
    parent.say(&run_for(span)?)
}

/// A connection of the server: an incoming request, or its outgoing answer.
#[derive(Debug)]
struct Answerer {
    stream: TcpStream,
    counter: u64,
    part: Part,
    request: Vec<u8>,
    /// Whether the answer is being sent.
    leaving: bool,
}

impl Answerer {
    /// Moves as much as possible. Returns false if the client has closed the stream.
    fn turn(&mut self, messages: Messages) -> anyhow::Result<bool> {
        if !self.leaving {
            let moved = self.part.read(&mut self.stream, &mut self.request)?;
            if moved != Moved::Whole {
                return Ok(moved == Moved::Part);
            }
            ensure!(
                work::is_marked(&self.request, self.counter),
                "a wrong message"
            );
            if !messages.echoed {
                work::fill(&mut self.request[..ANSWER], self.counter);
            }
            self.counter += 1;
            self.leaving = true;
        }
        let answer = &self.request[..messages.answer()];
        let moved = self.part.write(&mut self.stream, answer)?;
        self.leaving = moved == Moved::Part;
        Ok(moved != Moved::End)
    }
}

/// Answers until the streams end.
///
/// # Errors
/// A stream fails, or a message is wrong.
pub(crate) fn answer(parent: &Parent) -> anyhow::Result<()> {
    let Setting { messages, buffers } = parent.receive()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    parent.say(&listener.local_addr()?)?;
    let mut answerers = (0..messages.sessions)
        .map(|_| {
            Ok(Answerer {
                stream: prepare(listener.accept()?.0, buffers)?,
                counter: 0,
                part: Part::default(),
                request: vec![0; messages.size as usize],
                leaving: false,
            })
        })
        .collect::<anyhow::Result<Vec<Answerer>>>()?;
    loop {
        for answerer in &mut answerers {
            if !answerer.turn(messages)? {
                // The client is done.
                return Ok(());
            }
        }
    }
}
