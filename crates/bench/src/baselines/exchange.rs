//! Requests and answers between two processes over bare rings, with the same number in flight, the
//! same batches and the same contents as in `rate`: the upper bound for rates of RPCs over shared
//! memory.
//!
//! How cells are written decides the rate. The first store to a line that the other processor has
//! read takes some 100 ns, and all later stores wait for it. Therefore each side makes messages in
//! private lines, and writes a burst into the ring in one run, from its last cell to its first
//! ([`Writer::write_run`]). A burst has at most 16 messages: with longer bursts, each side would
//! wait while the other works.

use std::hint;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cells::{Burst, Reader, Shape, Writer};
use super::sys::Shared;
use super::{plausible, sys};
use crate::harness::case::Case;
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Exchanges requests and answers over two rings.
pub(crate) const ROLE: Role = Role::new("exchange", run);

/// Requests in flight, as in `rate`.
const INFLIGHT: u32 = 60;

/// The most messages taken from a ring at once.
const BURST: usize = 16;

/// Number of messages for which a burst has room; the first burst holds all requests in flight.
const ROOM: usize = 64;

/// Cells of a ring: four times the number of messages that both sides can have in flight.
const CELLS: usize = 512;

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
pub(crate) struct Exchange {
    /// Bytes of a request and of its answer.
    pub(crate) size: u16,
    /// Requests in a batch.
    pub(crate) batch: u32,
    /// Whether both sides make requests.
    pub(crate) symmetric: bool,
}

#[derive(Clone, Serialize, Deserialize)]
struct Params {
    memory: String,
    size: u16,
    batch: u32,
    /// Whether this process has the first end.
    is_first: bool,
    /// Whether this process makes requests, and reports the rate of their answers.
    issues: bool,
    span: Duration,
}

impl Params {
    fn shape(&self) -> Shape {
        shape(self.size)
    }
}

fn shape(size: u16) -> Shape {
    Shape {
        cells: CELLS,
        size: size.into(),
    }
}

/// The baselines of the usual cases of `rate` with messages of `size` bytes: requests in one
/// direction, and in both.
pub(crate) fn cases(size: u16) -> [Case; 2] {
    [("one_way", false), ("symmetric", true)].map(|(pattern, symmetric)| {
        let exchange = Exchange {
            size,
            batch: 3,
            symmetric,
        };
        let params: [(&str, Value); 4] = [
            ("pattern", pattern.into()),
            ("batch", exchange.batch.into()),
            ("inflight", INFLIGHT.into()),
            ("size", exchange.size.into()),
        ];
        Case::new("raw", "shm", &params, exchange)
    })
}

impl Probe for Exchange {
    fn name(&self) -> &'static str {
        "raw exchange over rings"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let (_memory, name) = sys::create_shared(2 * shape(self.size).bytes())?;
        let params = Params {
            memory: name,
            size: self.size,
            batch: self.batch,
            is_first: false,
            issues: self.symmetric,
            span,
        };
        let seats = Seats::pick();
        let mut second = Process::spawn(ROLE, seats.server, &params)?;
        let params = Params {
            is_first: true,
            issues: true,
            ..params
        };
        let mut first = Process::spawn(ROLE, seats.client, &params)?;
        let mut rate: f64 = first.receive(patience(span))?;
        if self.symmetric {
            rate = rate.min(second.receive(patience(span))?);
        }
        Ok(vec![rate].into())
    }

    fn is_plausible(&self, medians: &[f64]) -> bool {
        let sides = 1 + u32::from(self.symmetric);
        plausible::exchange(medians[0], shape(self.size).lines(), sides)
    }
}

/// One end of the two rings.
struct Side<'a> {
    reader: Reader<'a>,
    writer: Writer<'a>,
    incoming: Burst,
    outgoing: Burst,
    size: usize,
    batch: u32,
    /// Number of requests that may be made now.
    free: u32,
    issued: u64,
    answered: u64,
    wrong: Option<u64>,
}

impl Side<'_> {
    /// Issues whole batches while the limit of requests in flight allows it.
    fn issue(&mut self) {
        while self.free >= self.batch {
            for _ in 0..self.batch {
                work::fill(self.outgoing.push(), self.issued);
                self.issued += 1;
            }
            self.free -= self.batch;
        }
    }

    /// Takes the messages that have arrived, makes answers and new requests, and sends both.
    #[inline]
    fn turn(&mut self) {
        if !self.reader.read_run(&mut self.incoming, BURST) {
            hint::spin_loop();
            return;
        }
        for index in 0..self.incoming.len() {
            let message = self.incoming.get(index);
            if is_answer(message) {
                if !work::is_answer(message, self.size, self.answered) {
                    self.wrong.get_or_insert(self.answered);
                }
                self.answered += 1;
                self.free += 1;
                if self.free >= self.batch {
                    self.issue();
                }
            } else {
                work::answer(message, self.outgoing.push());
            }
        }
        self.send();
    }

    fn send(&mut self) {
        while !self.writer.write_run(&mut self.outgoing) {
            hint::spin_loop();
        }
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
            // On a busy machine, the other side may not run at all during a short span.
            if elapsed >= span && self.answered > before {
                ensure!(self.wrong.is_none(), "answer {:?} is wrong", self.wrong);
                return Ok((self.answered - before) as f64 / elapsed.as_secs_f64());
            }
        }
    }
}

/// Whether a message is an answer: the first word of an answer is the complement of a sum of small
/// numbers, the first word of a request is a small number.
#[inline]
fn is_answer(message: &[u8]) -> bool {
    work::counter(message).is_some_and(|word| word >> 63 == 1)
}

/// Runs one of the two processes. After its report it serves until the parent kills it.
///
/// # Errors
/// A wrong answer, or the memory cannot be mapped.
pub(crate) fn run(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let shape = params.shape();
    let memory = Shared::map(&params.memory, 2 * shape.bytes())?;
    let (out, into) = match params.is_first {
        true => (0, shape.bytes()),
        false => (shape.bytes(), 0),
    };
    // SAFETY: only the first process writes lane 0 and reads lane 1, and only the second does the
    // reverse; both use this shape.
    let (writer, reader) = unsafe {
        (
            Writer::new(&memory, out, shape),
            Reader::new(&memory, into, shape),
        )
    };
    let mut side = Side {
        reader,
        writer,
        incoming: Burst::new(shape, BURST),
        outgoing: Burst::new(shape, ROOM),
        size: shape.size,
        batch: params.batch,
        free: if params.issues { INFLIGHT } else { 0 },
        issued: 0,
        answered: 0,
        wrong: None,
    };
    side.issue();
    side.send();
    if params.issues {
        // The other process may not have started yet.
        while side.answered == 0 {
            side.turn();
        }
        side.rate(WARM_UP)?;
        let rate = side.rate(params.span)?;
        parent.say(&rate)?;
    }
    loop {
        side.turn();
    }
}
