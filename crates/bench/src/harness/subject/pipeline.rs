//! Many requests in flight, issued in batches from the continuation, over many sessions: the
//! client half of `rate` and `sessions`.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use dunlin::{Cx, Done, MsgBuf, Open, Rpc, Session, Tag};
use dunlin_core::Rng;

use super::ECHO;
use crate::harness::work;

/// Iterations of the event loop between two checks of the time.
const BLOCK: u32 = 64;

/// Bytes of a request and of its response, unless an experiment sets others.
pub(crate) const SIZE: u16 = 32;

/// Requests in flight over all sessions.
pub(crate) const INFLIGHT: usize = 60;

/// A measurement fails if no RPC completes for this long.
const STUCK: Duration = Duration::from_secs(5);

/// The state of a client with many requests in flight.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Bytes of a request and of its response.
    size: usize,
    sessions: Vec<Session>,
    choice: Choice,
    /// Requests that are issued together.
    batch: usize,
    /// Requests that may still be issued.
    left: u64,
    /// Buffers of requests that are not in flight.
    free: Vec<[MsgBuf; 2]>,
    /// The content of the next request.
    counter: u64,
    completed: u64,
    wrong: Option<String>,
}

/// Chooses the session of a request.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// The sessions in turn: `next` is the index of the next request's session.
    InTurn { next: usize },
    /// Any session.
    Random(Draws),
}

/// Random sessions, drawn some calls ahead, so that their state can be prefetched.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    rng: Rng,
    /// The session indices of the next calls, from position `next` on.
    ahead: [usize; AHEAD],
    next: usize,
}

/// The number of calls between a draw and its use: a little more than two batches.
const AHEAD: usize = 8;

impl Default for Choice {
    fn default() -> Self {
        Self::InTurn { next: 0 }
    }
}

/// An application that has a pipeline.
pub(crate) trait HasPipeline {
    fn pipeline(&mut self) -> &mut Pipeline;
}

impl HasPipeline for Pipeline {
    fn pipeline(&mut self) -> &mut Self {
        self
    }
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::of_size(SIZE)
    }
}

impl Pipeline {
    /// A pipeline whose requests and responses have `size` bytes.
    pub(crate) fn of_size(size: u16) -> Self {
        Self {
            size: size.into(),
            sessions: Vec::new(),
            choice: Choice::default(),
            batch: 0,
            left: 0,
            free: Vec::new(),
            counter: 0,
            completed: 0,
            wrong: None,
        }
    }

    /// Uses these sessions from now on.
    pub(crate) fn use_sessions(&mut self, sessions: Vec<Session>, choice: Choice) {
        self.sessions = sessions;
        self.choice = choice;
    }

    /// Begins to issue requests, in batches of `batch`, and stops after `requests` of them.
    ///
    /// # Errors
    /// There is no memory for message buffers.
    pub(crate) fn begin(
        &mut self,
        batch: usize,
        requests: u64,
        cx: &mut Cx<'_>,
    ) -> anyhow::Result<()> {
        ensure!(!self.sessions.is_empty(), "there are no sessions");
        (self.batch, self.left) = (batch, requests);
        while self.free.len() < INFLIGHT {
            self.free.push([cx.buf(self.size)?, cx.buf(self.size)?]);
        }
        self.issue(cx);
        Ok(())
    }

    /// The sessions that it uses.
    pub(crate) fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// Number of answers so far.
    ///
    /// # Errors
    /// One of them was wrong.
    pub(crate) fn completed(&mut self) -> anyhow::Result<u64> {
        match self.wrong.take() {
            Some(wrong) => bail!(wrong),
            None => Ok(self.completed),
        }
    }

    /// The continuation: checks the answer, and issues the next batch if enough buffers are free.
    #[inline]
    pub(crate) fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let answer = done.response.data();
        let is_right =
            done.result.is_ok() && answer.len() == self.size && is_answer(answer, done.tag.0);
        if !is_right {
            self.on_wrong(&done);
        }
        self.completed += 1;
        self.free.push([done.request, done.response]);
        if self.free.len() >= self.batch {
            self.issue(cx);
        }
    }

    /// Issues whole batches while it has buffers for them, and a last batch that may be smaller.
    fn issue(&mut self, cx: &mut Cx<'_>) {
        while self.left > 0 && self.free.len() >= self.batch {
            for _ in 0..self
                .batch
                .min(usize::try_from(self.left).unwrap_or(usize::MAX))
            {
                self.issue_one(cx);
            }
        }
    }

    #[inline]
    fn issue_one(&mut self, cx: &mut Cx<'_>) {
        let Some([mut request, response]) = self.free.pop() else {
            return;
        };
        let counter = self.counter;
        (self.counter, self.left) = (counter.wrapping_add(1), self.left - 1);
        work::fill(request.data_mut(), counter);
        let (index, ahead) = self.choice.next(self.sessions.len());
        if let Some(ahead) = ahead {
            cx.prefetch(self.sessions[ahead]);
        }
        let session = self.sessions[index];
        if let Err(refused) = cx.call(session, ECHO, request, response, Tag(counter)) {
            self.wrong = Some(refused.to_string());
        }
    }

    #[cold]
    fn on_wrong(&mut self, done: &Done) {
        self.wrong.get_or_insert_with(|| match done.result {
            Ok(()) => format!("the answer to request {} is wrong", done.tag.0),
            Err(error) => format!("request {}: {error}", done.tag.0),
        });
    }
}

impl Choice {
    /// The index of the next call's session, and the index of a later call's session, if it is
    /// known. Both are below `count`, which is not 0.
    #[inline]
    fn next(&mut self, count: usize) -> (usize, Option<usize>) {
        match self {
            Self::InTurn { next } => {
                let index = *next;
                *next = if index + 1 == count { 0 } else { index + 1 };
                (index, None)
            }
            Self::Random(draws) => {
                let drawn = draws.draw(count);
                (draws.exchange(drawn), Some(drawn))
            }
        }
    }
}

impl Draws {
    /// A generator of random indices below `count`. They depend only on `seed`.
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let mut draws = Self {
            rng: Rng::new(seed),
            ahead: [0; AHEAD],
            next: 0,
        };
        draws.ahead = [(); AHEAD].map(|()| draws.draw(count));
        draws
    }

    /// An index below `count`.
    #[inline]
    fn draw(&mut self, count: usize) -> usize {
        let wide = u64::from(self.rng.next_u32()) * count as u64;
        usize::try_from(wide >> 32).expect("it is below the count")
    }

    /// Takes the index that was drawn first, and keeps `drawn` in its place.
    #[inline]
    fn exchange(&mut self, drawn: usize) -> usize {
        let first = std::mem::replace(&mut self.ahead[self.next], drawn);
        self.next = (self.next + 1) % AHEAD;
        first
    }
}

/// True if these bytes answer a request of the same length.
#[inline]
fn is_answer(answer: &[u8], counter: u64) -> bool {
    const USUAL: usize = SIZE as usize;
    // With a constant length, the compiler checks all words without a loop.
    match answer.len() {
        USUAL => work::is_answer(answer, USUAL, counter),
        size => work::is_answer(answer, size, counter),
    }
}

/// Begins to issue requests, in batches of `batch`, and stops after `requests` of them.
///
/// # Errors
/// There is no memory for message buffers.
pub(crate) fn begin<T: Open, App: HasPipeline>(
    rpc: &mut Rpc<T, App>,
    batch: usize,
    requests: u64,
) -> anyhow::Result<()> {
    let (app, mut cx) = rpc.with();
    app.pipeline().begin(batch, requests, &mut cx)
}

/// Runs until no request is left to issue and none is in flight.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn finish<T: Open, App: HasPipeline>(rpc: &mut Rpc<T, App>) -> anyhow::Result<()> {
    loop {
        let pipeline = rpc.app_mut().pipeline();
        if pipeline.left == 0 && pipeline.free.len() == INFLIGHT {
            return Ok(());
        }
        let before = pipeline.completed;
        run_block(rpc, STUCK, |pipeline| pipeline.completed > before)?;
        let completed = rpc.app_mut().pipeline().completed;
        ensure!(
            completed > before,
            "nothing was answered for {} s",
            STUCK.as_secs()
        );
    }
}

/// Stops issuing, and runs until no request is in flight.
///
/// # Errors
/// An answer is wrong or missing.
pub(crate) fn stop<T: Open, App: HasPipeline>(rpc: &mut Rpc<T, App>) -> anyhow::Result<()> {
    rpc.app_mut().pipeline().left = 0;
    finish(rpc)
}

/// Measures a pipeline that never stops issuing: returns its completions per second during `span`.
///
/// # Errors
/// An answer is wrong or missing.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
pub(crate) fn rate<T: Open, App: HasPipeline>(
    rpc: &mut Rpc<T, App>,
    span: Duration,
) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let first = rpc.app_mut().pipeline().completed;
    run_block(rpc, span, |_| false)?;
    // On a busy machine, the other side may not have run at all during a short span.
    run_block(rpc, STUCK, |pipeline| pipeline.completed > first)?;
    let completed = rpc.app_mut().pipeline().completed - first;
    ensure!(
        completed > 0,
        "nothing was answered for {} s",
        STUCK.as_secs()
    );
    Ok(completed as f64 / begin.elapsed().as_secs_f64())
}

/// Runs the event loop for `span`, or until `is_enough` returns true.
fn run_block<T: Open, App: HasPipeline>(
    rpc: &mut Rpc<T, App>,
    span: Duration,
    is_enough: impl Fn(&Pipeline) -> bool,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
        let pipeline = rpc.app_mut().pipeline();
        if let Some(wrong) = pipeline.wrong.take() {
            bail!(wrong);
        }
        if is_enough(pipeline) || begin.elapsed() >= span {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
