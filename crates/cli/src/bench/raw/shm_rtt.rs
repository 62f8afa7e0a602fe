//! Ping-pong of a packet between two processes, over one lane each way.

use std::hint;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cells::{Reader, Shape, Writer};
use crate::bench::probe::{Measurement, Metric, Probe, patience};
use crate::bench::{plausible, rtt, work};
use crate::role::Role;
use crate::sys::{self, Shared};
use harness::process::{Parent, Process};
use harness::seat::Seats;

/// Cells of a lane; one is in use at a time, and a ring touches a new one each time as a transport
/// would.
const CELLS: usize = 64;

/// Round trips of packets of `size` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShmRtt {
    pub(crate) size: u32,
}

#[derive(Serialize, Deserialize)]
struct Params {
    memory: String,
    size: u32,
    span: Duration,
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
        let (_memory, name) = sys::create_shared(2 * shape(self.size).bytes())?;
        let params = Params {
            memory: name,
            size: self.size,
            span,
        };
        let seats = Seats::pick();
        let _server = Process::spawn(Role::ShmEcho, seats.server, &params)?;
        let mut client = Process::spawn(Role::ShmPing, seats.client, &params)?;
        Ok(client.receive::<Vec<f64>>(patience(span))?.into())
    }

    fn is_plausible(&self, medians: &[f64]) -> bool {
        let lines = u32::try_from(shape(self.size).lines()).unwrap_or(u32::MAX);
        plausible::shm_rtt(medians[0], lines)
    }
}

/// The client: lane 0 out, lane 1 in.
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
    let quantiles = rtt::measure(params.span, |counter| {
        while !requests.write(|out| work::fill(out, counter)) {
            hint::spin_loop();
        }
        loop {
            match responses.read(|response| work::is_answer(response, size, counter)) {
                Some(is_right) => return Ok(is_right),
                None => hint::spin_loop(),
            }
        }
    })?;
    parent.say(&quantiles)
}

/// The server; runs until the parent kills it.
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
        let answered = requests.read(|request| {
            while !responses.write(|out| work::answer(request, out)) {
                hint::spin_loop();
            }
        });
        if answered.is_none() {
            hint::spin_loop();
        }
    }
}
