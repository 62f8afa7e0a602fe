//! The cost of waking a sleeping process: after a silence, a client sends a packet to a server that
//! sleeps in the kernel, and spins for the answer.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{hint, thread};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::cells::{LINE, Reader, Shape, Writer};
use super::sys;
use super::sys::{Shared, futex};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::transport::Transport;
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Sends packets to a process that sleeps.
pub(crate) const PING: Role = Role::new("wake-ping", ping);

/// Sleeps until a packet comes, and answers it.
pub(crate) const ECHO: Role = Role::new("wake-echo", echo);

/// Bytes of a packet.
const SIZE: usize = 32;

/// The lanes: one each way. After them lies the word on which the server sleeps.
const SHAPE: Shape = Shape {
    cells: 8,
    size: SIZE,
};

/// Bytes of the shared memory.
const MEMORY: usize = 2 * SHAPE.bytes() + LINE;

/// Longest silence: a longer one makes no difference to a sleeping process.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

pub(super) const METRICS: [Metric; 1] = [Metric {
    name: "rtt_first",
    unit: "ns",
    against: Against::Baseline(0),
}];

/// Round trips after a silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake {
    pub(crate) transport: Transport,
    pub(crate) silence: Duration,
    pub(crate) samples: u32,
}

#[derive(Serialize, Deserialize)]
struct Params {
    medium: Medium,
    silence: Duration,
    samples: u32,
}

/// The medium on which the server waits.
#[derive(Clone, Serialize, Deserialize)]
enum Medium {
    Memory(String),
    Udp(SocketAddr),
}

impl Probe for Wake {
    fn name(&self) -> &'static str {
        "raw wake-up (after 1 s at most)"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        crate::harness::probe::SET_UP + self.silence.min(LONGEST) * self.samples
    }

    fn measure(&mut self, _: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick().anywhere();
        let (_memory, name) = sys::create_shared(MEMORY)?;
        let udp = self.transport == Transport::Udp;
        let offered = (!udp).then_some(Medium::Memory(name));
        let mut server = Process::spawn(ECHO, seats.server, &offered)?;
        let params = Params {
            medium: server.receive(patience(Duration::ZERO))?,
            silence: self.silence.min(LONGEST),
            samples: self.samples,
        };
        let mut client = Process::spawn(PING, seats.client, &params)?;
        let time: f64 = client.receive(patience(self.overhead()))?;
        Ok(vec![time].into())
    }
}

/// The server; runs until the parent kills it.
///
/// # Errors
/// The memory cannot be mapped, or the socket fails.
pub(crate) fn echo(parent: &Parent) -> anyhow::Result<()> {
    match parent.receive()? {
        Some(Medium::Memory(name)) => echo_memory(parent, name),
        _ => echo_udp(parent),
    }
}

/// The client; it reports the median of its round trips in ns.
///
/// # Errors
/// A wrong answer, or the memory cannot be mapped, or the socket fails.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let time = match &params.medium {
        Medium::Memory(name) => ping_memory(name, &params)?,
        Medium::Udp(server) => ping_udp(*server, &params)?,
    };
    parent.say(&time)
}

fn echo_memory(parent: &Parent, name: String) -> anyhow::Result<()> {
    let memory = Shared::map(&name, MEMORY)?;
    // SAFETY: this process alone reads lane 0 and writes lane 1; the client does the reverse.
    let (mut requests, mut responses) = unsafe {
        (
            Reader::new(&memory, 0, SHAPE),
            Writer::new(&memory, SHAPE.bytes(), SHAPE),
        )
    };
    parent.say(&Medium::Memory(name))?;
    loop {
        let seen = bell(&memory).load(Ordering::Acquire);
        let answered = requests.read(|request| {
            while !responses.write(|out| work::answer(request, out)) {
                hint::spin_loop();
            }
        });
        if answered.is_none() {
            futex::sleep(bell(&memory), seen)?;
        }
    }
}

fn ping_memory(name: &str, params: &Params) -> anyhow::Result<f64> {
    let memory = Shared::map(name, MEMORY)?;
    // SAFETY: this process alone writes lane 0 and reads lane 1; the server does the reverse.
    let (mut requests, mut responses) = unsafe {
        (
            Writer::new(&memory, 0, SHAPE),
            Reader::new(&memory, SHAPE.bytes(), SHAPE),
        )
    };
    median_trip(params.silence, params.samples, |counter| {
        while !requests.write(|out| work::fill(out, counter)) {
            hint::spin_loop();
        }
        bell(&memory).fetch_add(1, Ordering::Release);
        futex::wake(bell(&memory))?;
        loop {
            match responses.read(|response| work::is_answer(response, SIZE, counter)) {
                Some(is_right) => return Ok(is_right),
                None => hint::spin_loop(),
            }
        }
    })
}

/// The word on which the server sleeps.
fn bell(memory: &Shared) -> &AtomicU32 {
    // SAFETY: the offset lies inside the mapping, on a cache line after both lanes; both processes
    // use these bytes only as an atomic.
    unsafe { AtomicU32::from_ptr(memory.base().add(2 * SHAPE.bytes()).as_ptr().cast()) }
}

fn echo_udp(parent: &Parent) -> anyhow::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    parent.say(&Medium::Udp(socket.local_addr()?))?;
    let (mut request, mut response) = ([0; SIZE], [0; SIZE]);
    loop {
        let (len, client) = socket.recv_from(&mut request)?;
        ensure!(len == SIZE, "a request of {len} bytes");
        work::answer(&request, &mut response);
        socket.send_to(&response, client)?;
    }
}

fn ping_udp(server: SocketAddr, params: &Params) -> anyhow::Result<f64> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    let (mut request, mut response) = ([0; SIZE], [0; SIZE]);
    median_trip(params.silence, params.samples, |counter| {
        work::fill(&mut request, counter);
        socket.send_to(&request, server)?;
        loop {
            match socket.recv_from(&mut response) {
                Ok((len, _)) => return Ok(len == SIZE && work::is_answer(&response, SIZE, counter)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => hint::spin_loop(),
                Err(error) => return Err(error.into()),
            }
        }
    })
}

/// The median, in ns, of one trip after each silence; the first trip does not count.
///
/// # Errors
/// `trip` fails, or returns false because an answer is wrong.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a trip are far below 2^53"
)]
pub(super) fn median_trip(
    silence: Duration,
    samples: u32,
    mut trip: impl FnMut(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<f64> {
    ensure!(trip(0)?, "the answer to request 0 is wrong");
    let mut times = Vec::new();
    for counter in 1..=u64::from(samples) {
        thread::sleep(silence);
        let begin = Instant::now();
        ensure!(trip(counter)?, "the answer to request {counter} is wrong");
        times.push(begin.elapsed().as_nanos() as f64);
    }
    Ok(harness::row::Spread::of(times.into_iter()).map_or(0.0, |spread| spread.median))
}
