//! Ping-pong of a packet over AF_XDP or DPDK. Both sides spin.

use std::hint;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{LIBRARY_HEADER, LOST, Side};
use crate::harness::link::{self, End, Kind};
use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::{rtt, work};
use harness::process::{Parent, Process, Role};
use harness::seat::{Seat, Seats};

/// Measures round trips.
pub(crate) const PING: Role = Role::new("frame-ping", ping);

/// Answers them.
pub(crate) const ECHO: Role = Role::new("frame-echo", echo);

/// Polls between two checks of the time.
const POLLS: u32 = 1 << 16;

/// Round trips of packets with the library's header and `size` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRtt {
    pub(crate) size: u32,
    pub(crate) kind: Kind,
}

#[derive(Serialize, Deserialize)]
struct Params {
    end: End,
    seat: Seat,
    size: u32,
    span: Duration,
}

impl Probe for FrameRtt {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Dpdk => "raw DPDK ping-pong",
            Kind::Xdp(_) | Kind::Kernel => "raw AF_XDP ping-pong",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &rtt::METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let [near, far] = link::ends(self.kind)?;
        let params = |end, seat| Params {
            end,
            seat,
            size: self.size,
            span,
        };
        let mut server = Process::spawn(ECHO, Seat::default(), &params(far, seats.server))?;
        server.receive::<()>(patience(Duration::ZERO))?;
        let mut client = Process::spawn(PING, Seat::default(), &params(near, seats.client))?;
        Ok(client.receive::<Vec<f64>>(patience(span))?.into())
    }
}

fn open(params: &Params) -> anyhow::Result<Side> {
    let payload = LIBRARY_HEADER + params.size as usize;
    Side::open(&params.end, params.seat, payload, payload)
}

/// The client.
///
/// # Errors
/// A wrong or lost answer, or the interface or device cannot be opened.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let size = params.size as usize;
    let mut side = open(&params)?;
    let quantiles = rtt::measure(params.span, |counter| {
        ensure!(
            side.send(|payload| work::fill(&mut payload[LIBRARY_HEADER..], counter)),
            "no frame is free"
        );
        let mut is_right = false;
        let is_answer = |payload: &[u8]| {
            is_right = work::is_answer(&payload[LIBRARY_HEADER..], size, counter);
        };
        await_packet(&mut side, LOST, is_answer)?;
        Ok(is_right)
    })?;
    parent.say(&quantiles)
}

/// The server; runs until the parent kills it.
///
/// # Errors
/// The interface or device cannot be opened.
pub(crate) fn echo(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut side = open(&params)?;
    parent.say(&())?;
    let mut request = vec![0; params.size as usize];
    loop {
        await_packet(&mut side, Duration::MAX, |payload| {
            request.copy_from_slice(&payload[LIBRARY_HEADER..]);
        })?;
        let answered = side.send(|payload| work::answer(&request, &mut payload[LIBRARY_HEADER..]));
        ensure!(answered, "no frame is free");
    }
}

/// Spins until a packet of the other side arrives.
#[inline]
fn await_packet(
    side: &mut Side,
    limit: Duration,
    mut take: impl FnMut(&[u8]),
) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        for _ in 0..POLLS {
            let mut has_come = false;
            side.receive(1, |payload| {
                has_come = true;
                take(payload);
            });
            if has_come {
                return Ok(());
            }
            hint::spin_loop();
        }
        ensure!(begin.elapsed() < limit, "an answer is lost");
    }
}
