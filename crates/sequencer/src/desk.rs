//! The state of a serving endpoint: the sequencer, and requests that wait for its disk.
//!
//! Invariant: each waiting request is answered when the disk has done its part, or when the server
//! ends. Called by `service.rs`, and by the owner of the endpoint: `keeper.rs`, or the simulator.

use std::collections::VecDeque;

use dunlin_core::{Cx, DeferredRequest, Nanos, Refuse, Request};
use dunlin_wire::ErrorCode;

use crate::disk::{Claim, ClaimError, Disk, Job, Outcome, Taking, claim, run};
use crate::machine::{Ending, Options, Sequencer, Taken};
use crate::wire::{Answer, Figures, Status, Take, Words};

/// The most requests that wait for the disk.
const MOST_WAITING: usize = 1 << 16;

/// A server of numbers: the state of its endpoint.
#[derive(Debug)]
pub struct Desk {
    sequencer: Sequencer,
    waiting: VecDeque<(DeferredRequest, Take)>,
}

/// Claims the next epoch of a directory for this process. It blocks.
///
/// # Errors
/// [`ClaimError`].
pub fn take_directory(
    disk: &mut impl Disk,
    taking: Taking,
    options: &Options,
    process: u32,
) -> Result<Claim, ClaimError> {
    claim(disk, taking, options.terms(process))
}

/// Performs a job of a [`Desk`]. It blocks.
pub fn perform(disk: &mut impl Disk, job: &Job) -> Outcome {
    run(disk, job)
}

impl Desk {
    /// Makes a server that has claimed an epoch.
    #[must_use]
    pub fn new(claim: Claim, options: Options) -> Self {
        Self {
            sequencer: Sequencer::new(claim, options),
            waiting: VecDeque::new(),
        }
    }

    pub(crate) const fn sequencer(&mut self) -> &mut Sequencer {
        &mut self.sequencer
    }

    /// Takes numbers for a request of the usual kind; see [`Sequencer::take_usual`]. `None`:
    /// [`Self::on_take`] must handle the request.
    #[inline]
    pub(crate) fn take_usual(&mut self, request: &[u8], cx: &Cx<'_>) -> Option<u64> {
        self.sequencer.take_usual(Words::of(request)?, cx.now())
    }

    /// Answers a request, or keeps it until the disk has done its part.
    pub(crate) fn on_take(&mut self, request: Request<'_>, cx: &mut Cx<'_>) {
        let now = cx.now();
        let expecting = Words::of(request.data());
        if let Some(answer) = expecting.and_then(|it| self.sequencer.take_expecting(it, now)) {
            return reply(answer, request, cx);
        }
        let Ok(take) = Take::decode(request.data()) else {
            return request.refuse(cx, ErrorCode::UNDECODABLE);
        };
        let answer = match self.sequencer.take(&take, now) {
            Taken::First(first) => take.answer(first),
            Taken::Refused(status) => Answer::Refused(status),
            Taken::Later if self.waiting.len() < MOST_WAITING => {
                self.sequencer.on_wait();
                return self.waiting.push_back((request.defer(cx), take));
            }
            Taken::Later => Answer::Refused(Status::Busy),
        };
        reply(answer, request, cx);
    }

    /// The next job for the disk, if one is due and none is in progress.
    pub fn next_job(&mut self, now: Nanos) -> Option<Job> {
        self.sequencer.next_job(now)
    }

    /// The time at which [`Self::next_job`] returns a job, unless a request arrives earlier.
    /// [`Nanos::MAX`]: not before the job in progress has ended, or never.
    #[inline]
    #[must_use]
    pub fn next_job_at(&self) -> Nanos {
        self.sequencer.next_job_at()
    }

    /// Takes the outcome of a job, and answers the requests that have waited for it.
    pub fn on_outcome(&mut self, outcome: Outcome, cx: &mut Cx<'_>) {
        self.sequencer.on_outcome(outcome);
        self.answer_waiting(cx);
    }

    /// Begins to stop. Once [`Self::ending`] returns a reason, the disk has the last state.
    pub fn stop(&mut self, cx: &mut Cx<'_>) {
        self.sequencer.stop();
        self.answer_waiting(cx);
    }

    /// The epoch of the server.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.sequencer.epoch()
    }

    /// The server's state at a time.
    #[must_use]
    pub fn figures(&self, now: Nanos) -> Figures {
        self.sequencer.figures(now)
    }

    /// The reason why the server has ended; `None` before its end.
    #[must_use]
    pub const fn ending(&self) -> Option<&Ending> {
        self.sequencer.ending()
    }

    /// Moves that reason out, at the end.
    pub const fn take_ending(&mut self) -> Option<Ending> {
        self.sequencer.take_ending()
    }

    fn answer_waiting(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        for _ in 0..self.waiting.len() {
            let Some((request, take)) = self.waiting.pop_front() else {
                return;
            };
            if request.is_cancelled(cx) {
                continue;
            }
            let answer = match self.sequencer.take(&take, now) {
                Taken::First(first) => take.answer(first),
                Taken::Refused(status) => Answer::Refused(status),
                Taken::Later => {
                    self.waiting.push_back((request, take));
                    continue;
                }
            };
            request.reply(cx, answer.size(), |out| answer.encode(out));
        }
    }
}

/// Answers a request. There is a branch for each length, so that the compiler knows the length:
/// this saves a call.
#[inline]
fn reply(answer: Answer, request: Request<'_>, cx: &mut Cx<'_>) {
    match answer {
        Answer::Whole(first) => {
            let bytes = first.to_le_bytes();
            request.reply(cx, bytes.len(), |out| out.copy_from_slice(&bytes));
        }
        Answer::Lower(lower) => {
            let bytes = lower.to_le_bytes();
            request.reply(cx, bytes.len(), |out| out.copy_from_slice(&bytes));
        }
        Answer::Refused(status) => request.reply_bytes(cx, &[status.number()]),
    }
}
