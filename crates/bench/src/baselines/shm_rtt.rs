//! Ping-pong of a packet between two processes, over one lane each way: the baseline of round trips
//! over shared memory, and the measure of the machine's state ([`harness::state`]).

use std::fs::File;
use std::hint;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cells::{Reader, Shape, Writer};
use super::sys::Shared;
use super::{plausible, sys};
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::{rtt, work};
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Measures round trips.
pub(crate) const PING: Role = Role::new("shm-ping", ping);

/// Answers them.
pub(crate) const ECHO: Role = Role::new("shm-echo", echo);

/// Cells of a lane. Only one is in use at a time, but each round trip touches a new one, as with a
/// transport.
const CELLS: usize = 64;

/// Tells the server that a game is over; no request begins with it.
const OVER: u64 = u64::MAX;

/// Round trips of packets of `size` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShmRtt {
    pub(crate) size: u32,
}

/// Two processes that play ping-pong on request, and sleep between games.
#[derive(Debug)]
pub(crate) struct PingPong {
    client: Process,
    server: Process,
    _memory: File,
}

#[derive(Serialize, Deserialize)]
struct Params {
    memory: String,
    size: u32,
}

impl Params {
    fn shape(&self) -> Shape {
        shape(self.size)
    }
}

fn shape(size: u32) -> Shape {
    Shape {
        cells: CELLS,
        size: size as usize,
    }
}

impl Probe for ShmRtt {
    fn name(&self) -> &'static str {
        "raw shared-memory ping-pong"
    }

    fn metrics(&self) -> &'static [Metric] {
        &rtt::METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        Ok(PingPong::start(self.size)?.play(span)?.into())
    }

    fn is_plausible(&self, medians: &[f64]) -> bool {
        let lines = u32::try_from(shape(self.size).lines()).unwrap_or(u32::MAX);
        plausible::shm_rtt(medians[0], lines)
    }
}

impl PingPong {
    /// Starts the two processes, for packets of `size` bytes.
    ///
    /// # Errors
    /// The system has no memory, or cannot start another process.
    pub(crate) fn start(size: u32) -> anyhow::Result<Self> {
        let (memory, name) = sys::create_shared(2 * shape(size).bytes())?;
        let params = Params { memory: name, size };
        let seats = Seats::pick();
        Ok(Self {
            server: Process::spawn(ECHO, seats.server, &params)?,
            client: Process::spawn(PING, seats.client, &params)?,
            _memory: memory,
        })
    }

    /// Plays for `span`. Returns [`rtt::METRICS`].
    ///
    /// # Errors
    /// [`harness::signal::Interrupted`]; or a process has ended or hangs.
    pub(crate) fn play(&mut self, span: Duration) -> anyhow::Result<Vec<f64>> {
        self.server.send(&())?;
        self.client.send(&span)?;
        self.client.receive(patience(span))
    }
}

/// The client: it writes lane 0 and reads lane 1. Each span that the parent sends starts a game.
///
/// # Errors
/// A wrong answer, or the memory cannot be mapped.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let (shape, size) = (params.shape(), params.size as usize);
    let memory = Shared::map(&params.memory, 2 * shape.bytes())?;
    // SAFETY: this process alone writes lane 0 and reads lane 1; the echo does the reverse.
    let (mut requests, mut responses) = unsafe {
        (
            Writer::new(&memory, 0, shape),
            Reader::new(&memory, shape.bytes(), shape),
        )
    };
    loop {
        let span: Duration = parent.receive()?;
        let quantiles = rtt::measure(span, |counter| {
            send(&mut requests, counter);
            loop {
                match responses.read(|response| work::is_answer(response, size, counter)) {
                    Some(is_right) => return Ok(is_right),
                    None => hint::spin_loop(),
                }
            }
        })?;
        send(&mut requests, OVER);
        parent.say(&quantiles)?;
    }
}

fn send(requests: &mut Writer<'_>, counter: u64) {
    while !requests.write(|out| work::fill(out, counter)) {
        hint::spin_loop();
    }
}

/// The server. Each line from the parent starts a game, which the client ends.
///
/// # Errors
/// The memory cannot be mapped.
pub(crate) fn echo(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let shape = params.shape();
    let memory = Shared::map(&params.memory, 2 * shape.bytes())?;
    // SAFETY: this process alone reads lane 0 and writes lane 1; the ping does the reverse.
    let (mut requests, mut responses) = unsafe {
        (
            Reader::new(&memory, 0, shape),
            Writer::new(&memory, shape.bytes(), shape),
        )
    };
    loop {
        let () = parent.receive()?;
        let mut is_over = false;
        while !is_over {
            let over = requests.read(|request| {
                let is_over = work::counter(request) == Some(OVER);
                while !is_over && !responses.write(|out| work::answer(request, out)) {
                    hint::spin_loop();
                }
                is_over
            });
            match over {
                Some(over) => is_over = over,
                None => hint::spin_loop(),
            }
        }
    }
}
