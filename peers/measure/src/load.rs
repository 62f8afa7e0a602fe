//! The work of a client of any peer: for a span of time it keeps a number of calls in flight and
//! checks each answer, and then it reports.

use std::time::{Duration, Instant};

use anyhow::ensure;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::{cpu, work};

/// Time before the first call that counts: by then connections have grown their windows, and the
/// processor predicts the branches.
const WARM_UP: Duration = Duration::from_millis(100);

/// One less than the number of calls between two readings of the clock, if more than one call is in
/// flight.
const MASK: u64 = 31;

/// Orders for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) size: usize,
    pub(crate) inflight: usize,
    pub(crate) span: Duration,
    /// The server's process.
    pub(crate) server: u32,
}

/// The report of a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Median of the round trips, if one call was in flight.
    pub(crate) median_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) calls_per_s: f64,
    /// Seconds of processor time for a million calls, both processes together.
    pub(crate) cpu_s: f64,
    /// Calls that the client issued again, because no answer came.
    pub(crate) lost: u64,
}

/// A client at work. Calls are numbered from 0.
#[derive(Clone)]
pub(crate) struct Load {
    order: Order,
    next: u64,
    completed: u64,
    lost: u64,
    /// When the only call in flight was issued.
    issued: Instant,
    times: Histogram<u64>,
    begun: Instant,
    counting: Option<Mark>,
    report: Option<Report>,
}

/// The values at the moment when counting began.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    completed: u64,
    cpu_ns: u64,
}

impl Load {
    pub(crate) fn new(order: Order) -> anyhow::Result<Self> {
        let now = Instant::now();
        Ok(Self {
            order,
            next: 0,
            completed: 0,
            lost: 0,
            issued: now,
            times: Histogram::new(3)?,
            begun: now,
            counting: None,
            report: None,
        })
    }

    /// Bytes of a request and of its response.
    pub(crate) fn size(&self) -> usize {
        self.order.size
    }

    /// Calls in flight.
    pub(crate) fn inflight(&self) -> usize {
        self.order.inflight
    }

    /// Writes the next request, and returns its number; `None` once the load has enough.
    #[inline]
    pub(crate) fn next(&mut self, request: &mut [u8]) -> Option<u64> {
        if self.report.is_some() {
            return None;
        }
        let number = self.next;
        self.next += 1;
        if self.order.inflight == 1 {
            self.issued = Instant::now();
        }
        work::fill(request, number);
        Some(number)
    }

    /// Notes that a call has ended with this response.
    #[inline]
    pub(crate) fn end(&mut self, number: u64, response: &[u8]) -> anyhow::Result<()> {
        let is_right = response.len() == self.order.size && work::is_answer(response, number);
        ensure!(is_right, "the answer to request {number} is wrong");
        self.completed += 1;
        if self.order.inflight == 1 {
            let elapsed = self.issued.elapsed();
            self.times.record(u64::try_from(elapsed.as_nanos())?)?;
        } else if self.completed & MASK != 0 {
            return Ok(());
        }
        self.look()
    }

    /// Counts these calls as lost; the client issues them again.
    pub(crate) fn lose(&mut self, calls: u64) {
        self.lost += calls;
    }

    /// The report, once [`Self::next`] has returned `None`.
    pub(crate) fn report(&self) -> Option<Report> {
        self.report
    }

    /// Reads the clock; begins or ends the count when it is time.
    fn look(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        match self.counting {
            None if now - self.begun >= WARM_UP => {
                self.times.reset();
                self.counting = Some(Mark {
                    at: now,
                    completed: self.completed,
                    cpu_ns: self.cpu_ns()?,
                });
            }
            Some(mark) if self.report.is_none() && now - mark.at >= self.order.span => {
                self.report = Some(self.summary(mark, now)?);
            }
            _ => {}
        }
        Ok(())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of a run are far below 2^53"
    )]
    fn summary(&self, mark: Mark, now: Instant) -> anyhow::Result<Report> {
        let completed = (self.completed - mark.completed) as f64;
        let cpu_ns = self.cpu_ns()?.saturating_sub(mark.cpu_ns) as f64;
        Ok(Report {
            median_ns: self.times.value_at_quantile(0.5) as f64,
            p99_ns: self.times.value_at_quantile(0.99) as f64,
            calls_per_s: completed / (now - mark.at).as_secs_f64(),
            // Nanoseconds for one call are milliseconds for a million calls.
            cpu_s: cpu_ns / completed / 1e3,
            lost: self.lost,
        })
    }

    fn cpu_ns(&self) -> anyhow::Result<u64> {
        Ok(cpu::time_ns(std::process::id())? + cpu::time_ns(self.order.server)?)
    }
}
