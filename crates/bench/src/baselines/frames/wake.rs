//! The cost of waking a process for a packet over AF_XDP: after a silence, a client sends a packet
//! to a server that sleeps in `poll(2)`, and spins for the answer.

use std::hint;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{LIBRARY_HEADER, LOST, Side};
use crate::baselines::wake::{LONGEST, METRICS, median_trip};
use crate::harness::link::{self, End, Kind};
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::{Seat, Seats};

/// Sends packets to a process that sleeps.
pub(crate) const PING: Role = Role::new("frame-wake-ping", ping);

/// Sleeps until a packet comes, and answers it.
pub(crate) const ECHO: Role = Role::new("frame-wake-echo", echo);

/// Bytes of a message.
const SIZE: usize = 32;

/// Round trips after a silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameWake {
    pub(crate) kind: Kind,
    pub(crate) silence: Duration,
    pub(crate) samples: u32,
}

#[derive(Serialize, Deserialize)]
struct Params {
    end: End,
    seat: Seat,
    silence: Duration,
    samples: u32,
}

impl Probe for FrameWake {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Xdp(_) => "raw AF_XDP and poll (after 1 s at most)",
            Kind::Kernel | Kind::Dpdk => "bare packets and poll (after 1 s at most)",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        crate::harness::probe::SET_UP + self.silence.min(LONGEST) * self.samples
    }

    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick().anywhere();
        let [near, far] = link::ends(self.kind)?;
        let params = |end, seat| Params {
            end,
            seat,
            silence: self.silence.min(LONGEST),
            samples: self.samples,
        };
        let mut server = Process::spawn(ECHO, Seat::default(), &params(far, seats.server))?;
        server.receive::<()>(patience(Duration::ZERO))?;
        let mut client = Process::spawn(PING, Seat::default(), &params(near, seats.client))?;
        let time: f64 = client.receive(patience(self.overhead()))?;
        Ok(vec![time].into())
    }
}

fn open(params: &Params) -> anyhow::Result<Side> {
    let payload = LIBRARY_HEADER + SIZE;
    Side::open(&params.end, params.seat, payload, payload)
}

/// The client.
///
/// # Errors
/// A wrong or lost answer, or the kernel refuses the socket.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut side = open(&params)?;
    let time = median_trip(params.silence, params.samples, |counter| {
        let sent = side.send(|payload| work::fill(&mut payload[LIBRARY_HEADER..], counter));
        ensure!(sent, "no frame is free");
        let (begin, mut answer) = (Instant::now(), None);
        while answer.is_none() {
            side.receive(1, |payload| {
                answer = Some(work::is_answer(&payload[LIBRARY_HEADER..], SIZE, counter));
            });
            ensure!(begin.elapsed() < LOST, "an answer is lost");
            hint::spin_loop();
        }
        Ok(answer == Some(true))
    })?;
    parent.say(&time)
}

/// The server; runs until the parent kills it.
///
/// # Errors
/// The kernel refuses the socket.
pub(crate) fn echo(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut side = open(&params)?;
    parent.say(&())?;
    let mut request = None;
    loop {
        let came = side.receive(1, |payload| {
            request = payload[LIBRARY_HEADER..].first_chunk::<SIZE>().copied();
        });
        if let Some(request) = request.take() {
            side.send(|payload| work::answer(&request, &mut payload[LIBRARY_HEADER..]));
        }
        if came == 0 {
            side.port.wait()?;
        }
    }
}
