//! The messages of `bandwidth` over one TCP stream of the kernel. The sender and the receiver are
//! plain programs: each message is one write, and each answer has 32 bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{METRICS, Messages};
use crate::harness::case::Case;
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::subject::ANSWER;
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Sends large messages over a TCP stream.
pub(crate) const SEND: Role = Role::new("tcp-send", send);

/// Receives them.
pub(crate) const RECEIVE: Role = Role::new("tcp-receive", receive);

/// The probe that sends these messages over a stream.
#[derive(Clone, Copy, Debug)]
struct Tcp(Messages);

#[derive(Debug, Serialize, Deserialize)]
struct Params {
    receiver: SocketAddr,
    messages: Messages,
    span: Duration,
}

pub(super) fn case(messages: Messages) -> Case {
    let params: [(&str, Value); 3] = [
        ("size", messages.size.into()),
        ("inflight", messages.inflight.into()),
        ("peer", "tcp".into()),
    ];
    Case::new("bandwidth", "tcp", &params, Tcp(messages))
}

impl Probe for Tcp {
    fn name(&self) -> &'static str {
        "TCP stream"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        self.0.overhead()
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let mut receiving = Process::spawn(RECEIVE, seats.server, &self.0)?;
        let receiver = receiving.receive(patience(Duration::ZERO))?;
        let params = Params {
            receiver,
            messages: self.0,
            span,
        };
        let mut sending = Process::spawn(SEND, seats.client, &params)?;
        Ok(vec![sending.receive(patience(span + 4 * self.overhead()))?].into())
    }
}

/// Sends messages and reports their rate.
///
/// # Errors
/// The stream fails, or an answer is wrong.
pub(crate) fn send(parent: &Parent) -> anyhow::Result<()> {
    let Params {
        receiver,
        messages,
        span,
    } = parent.receive()?;
    let mut stream = TcpStream::connect(receiver)?;
    stream.set_nodelay(true)?;
    let mut message = vec![0; messages.size as usize];
    let (mut sent, mut answered) = (0_u64, 0_u64);
    let mut begin = Instant::now();
    let mut first = 0;
    while answered <= first || begin.elapsed() < span {
        while sent < answered + u64::from(messages.inflight) {
            work::mark(&mut message, sent);
            stream.write_all(&message)?;
            sent += 1;
        }
        let mut answer = [0; ANSWER];
        stream.read_exact(&mut answer)?;
        ensure!(
            work::is_request(&answer, answered),
            "a wrong answer to message {answered}"
        );
        answered += 1;
        if first == 0 {
            // The first message also waits for its memory to be mapped.
            (first, begin) = (answered, Instant::now());
        }
    }
    parent.say(&messages.gbps(answered - first, begin.elapsed()))
}

/// Receives and answers until the stream ends.
///
/// # Errors
/// The stream fails, or a message is wrong.
pub(crate) fn receive(parent: &Parent) -> anyhow::Result<()> {
    let messages: Messages = parent.receive()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    parent.say(&listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut message = vec![0; messages.size as usize];
    for counter in 0.. {
        if stream.read_exact(&mut message).is_err() {
            // The sender is done.
            return Ok(());
        }
        ensure!(work::is_marked(&message, counter), "a wrong message");
        let mut answer = [0; ANSWER];
        work::fill(&mut answer, counter);
        stream.write_all(&answer)?;
    }
    Ok(())
}
