//! Requests and answers over AF_XDP or DPDK. As many requests are in flight, and in a batch, as in
//! `rate`, and each message has its own packet. The result is an upper bound for the rates without
//! packing.

use std::hint;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{LIBRARY_HEADER, LOST, Side};
use crate::harness::link::{self, End, Kind};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::{Seat, Seats};

/// Exchanges requests and answers.
pub(crate) const ROLE: Role = Role::new("frame-exchange", run);

/// Requests in flight, as in `rate`.
const INFLIGHT: u32 = 60;

/// The most packets taken from the ring at once.
const BURST: u32 = 16;

/// Time before the first answer that counts.
const WARM_UP: Duration = Duration::from_millis(5);

/// Turns between two checks of the time.
const BLOCK: u32 = 64;

const METRICS: [Metric; 1] = [Metric {
    name: "exchanges_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// The rate of exchanges of a request and an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameExchange {
    /// Bytes of a request and of its answer.
    pub(crate) size: u16,
    /// Requests in a batch.
    pub(crate) batch: u32,
    /// Whether both sides make requests.
    pub(crate) symmetric: bool,
    pub(crate) kind: Kind,
}

#[derive(Serialize, Deserialize)]
struct Params {
    end: End,
    seat: Seat,
    size: u16,
    batch: u32,
    /// Whether this process makes requests, and reports the rate of their answers.
    issues: bool,
    /// Whether this process makes the first requests. The other one waits until a request arrives.
    begins: bool,
    span: Duration,
}

impl Probe for FrameExchange {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Dpdk => "raw DPDK exchange",
            Kind::Xdp(_) | Kind::Kernel => "raw AF_XDP exchange",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let [near, far] = link::ends(self.kind)?;
        let params = |end, seat, begins, issues| Params {
            end,
            seat,
            size: self.size,
            batch: self.batch,
            issues,
            begins,
            span,
        };
        let of_second = params(far, seats.server, false, self.symmetric);
        let mut second = Process::spawn(ROLE, Seat::default(), &of_second)?;
        second.receive::<()>(patience(Duration::ZERO))?;
        let of_first = params(near, seats.client, true, true);
        let mut first = Process::spawn(ROLE, Seat::default(), &of_first)?;
        first.receive::<()>(patience(Duration::ZERO))?;
        let mut rate: f64 = first.receive(patience(span))?;
        if self.symmetric {
            rate = rate.min(second.receive(patience(span))?);
        }
        Ok(vec![rate].into())
    }
}

/// One of the two processes.
struct Peer {
    side: Side,
    size: usize,
    batch: u32,
    /// Requests that may be made now.
    free: u32,
    issued: u64,
    answered: u64,
    /// Requests of the other side that were answered.
    served: u64,
    wrong: Option<u64>,
    /// The other side's requests of one burst, stored one after the other.
    requests: Vec<u8>,
}

impl Peer {
    /// Issues whole batches while the limit of requests in flight allows it.
    fn issue(&mut self) {
        while self.free >= self.batch {
            for _ in 0..self.batch {
                let counter = self.issued;
                self.push(|message| work::fill(message, counter));
                self.issued += 1;
            }
            self.free -= self.batch;
        }
    }

    /// Writes a message; waits for the link if no frame is free.
    fn push(&mut self, write: impl Fn(&mut [u8])) {
        while !self
            .side
            .push(|payload| write(&mut payload[LIBRARY_HEADER..]))
        {
            self.side.port.kick();
        }
    }

    /// Takes the messages that have arrived, makes answers and new requests, and sends both.
    #[inline]
    fn turn(&mut self) {
        let (mut answers, mut wrong) = (0, None);
        let (size, answered, requests) = (self.size, self.answered, &mut self.requests);
        requests.clear();
        let came = self.side.receive(BURST, |payload| {
            let message = &payload[LIBRARY_HEADER..];
            // The first word of an answer is the complement of a sum of small numbers.
            if work::counter(message).is_some_and(|word| word >> 63 == 1) {
                if !work::is_answer(message, size, answered + answers) {
                    wrong = Some(answered + answers);
                }
                answers += 1;
            } else {
                requests.extend_from_slice(message);
            }
        });
        if came == 0 {
            return hint::spin_loop();
        }
        self.wrong = self.wrong.or(wrong);
        self.answered += answers;
        self.free += u32::try_from(answers).unwrap_or(u32::MAX);
        let requests = std::mem::take(&mut self.requests);
        for request in requests.chunks_exact(size) {
            self.push(|message| work::answer(request, message));
            self.served += 1;
        }
        self.requests = requests;
        self.issue();
        self.side.port.kick();
    }

    /// Answers per second.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn rate(&mut self, span: Duration) -> anyhow::Result<f64> {
        let (begin, before) = (Instant::now(), self.answered);
        loop {
            for _ in 0..BLOCK {
                self.turn();
            }
            let elapsed = begin.elapsed();
            ensure!(self.wrong.is_none(), "answer {:?} is wrong", self.wrong);
            if elapsed >= span && self.answered > before {
                return Ok((self.answered - before) as f64 / elapsed.as_secs_f64());
            }
            ensure!(elapsed < span + LOST, "packets were lost");
        }
    }
}

/// Runs one of the two processes. After its report it serves until the parent kills it.
///
/// # Errors
/// A wrong or lost answer, or the interface or device cannot be opened.
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let size = usize::from(params.size);
    let payload = LIBRARY_HEADER + size;
    let mut peer = Peer {
        side: Side::open(&params.end, params.seat, payload, payload)?,
        size,
        batch: params.batch,
        free: 0,
        issued: 0,
        answered: 0,
        served: 0,
        wrong: None,
        requests: Vec::with_capacity(BURST as usize * size),
    };
    parent.say(&())?;
    if params.issues {
        // The second process begins with the first request that it gets.
        while !params.begins && peer.served == 0 {
            peer.turn();
        }
        peer.free = INFLIGHT;
        peer.issue();
        peer.side.port.kick();
        peer.rate(WARM_UP)?;
        let rate = peer.rate(params.span)?;
        parent.say(&rate)?;
    }
    loop {
        peer.turn();
    }
}
