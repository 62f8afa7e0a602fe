//! The loop of a thread: the endpoint, the sockets, and the wait for both.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_nexus::{Open, Rpc};

use crate::desk::Desk;
use crate::front::{Front, PERIOD};

/// Number of iterations with packets between two looks at the sockets. The transport `auto` looks
/// at UDP at the same interval.
const BETWEEN: u32 = 32;

/// An iteration without packets counts as this number of iterations with packets. So the thread
/// looks at the sockets more often while the endpoint is idle, but not in each iteration, because a
/// look costs as much as several of these.
const QUIET: u32 = 4;

/// How long clients have turns, one after the other, before the thread looks at a parked endpoint
/// again. The last turn may exceed it.
const MOST_TURNS: Nanos = Nanos::from_micros(50);

/// Iterations since the last look at the sockets.
#[derive(Default, Debug)]
struct Gap {
    iterations: u32,
}

impl Gap {
    /// Counts an iteration. True if the next look is due.
    fn on_iteration(&mut self, is_quiet: bool) -> bool {
        self.iterations += if is_quiet { QUIET } else { 1 };
        let is_due = self.iterations >= BETWEEN;
        if is_due {
            self.iterations = 0;
        }
        is_due
    }
}

impl Front {
    /// Serves the endpoint and the sockets until `is_done`, which it calls after each iteration.
    /// Sets the clock of the endpoint's table.
    ///
    /// # Errors
    /// The system has no descriptors left for the wait.
    pub fn drive<T: Open>(
        &mut self,
        rpc: &mut Rpc<T, Desk>,
        is_done: impl FnMut() -> bool,
    ) -> io::Result<()> {
        let now = rpc.now();
        rpc.app_mut().on_start(now);
        self.on_start(rpc.app());
        self.watch(rpc.as_fd())?;
        let driven = self.drive_on(rpc, is_done);
        self.forget(rpc.as_fd())?;
        driven
    }

    fn drive_on<T: Open>(
        &mut self,
        rpc: &mut Rpc<T, Desk>,
        mut is_done: impl FnMut() -> bool,
    ) -> io::Result<()> {
        // After a wait that the endpoint has not ended, the next wait begins at once: the thread
        // spins only after packets. An endpoint that never blocks never sets this.
        let mut is_calm = false;
        let mut gap = Gap::default();
        while !is_done() {
            let progress = rpc.iterate(|_| {
                is_calm = true;
                Nanos::ZERO
            });
            let is_quiet = progress.frames == 0;
            is_calm &= is_quiet;
            self.on_news(rpc);
            if self.has_turns() {
                let now = rpc.now();
                let time = rpc.app().time(now);
                self.turn(rpc.app_mut(), time);
            } else if is_calm && !self.has_errands(rpc.last_now()) {
                self.rest(rpc, &mut is_done)?;
                gap = Gap::default();
                continue;
            }
            if self.has_errands(rpc.last_now()) {
                self.send_errands(rpc);
            }
            if gap.on_iteration(is_quiet) {
                self.look_now(rpc, Duration::ZERO)?;
            }
        }
        Ok(())
    }

    /// Waits for packets and sockets.
    fn rest<T: Open>(
        &mut self,
        rpc: &mut Rpc<T, Desk>,
        is_done: &mut impl FnMut() -> bool,
    ) -> io::Result<()> {
        let Some(span) = rpc.park() else {
            return self.look_now(rpc, Duration::ZERO).map(|_| ());
        };
        let rested = self.rest_on(rpc, span, is_done);
        rpc.unpark();
        rested
    }

    /// Serves clients while the endpoint is parked, until the endpoint has work or errands may
    /// leave. So a client's command costs no system call of the endpoint.
    fn rest_on<T: Open>(
        &mut self,
        rpc: &mut Rpc<T, Desk>,
        span: Duration,
        is_done: &mut impl FnMut() -> bool,
    ) -> io::Result<()> {
        let end = rpc.now() + span.into();
        loop {
            let left = match self.has_turns() {
                true => Nanos::ZERO,
                false => end.since(rpc.now()),
            };
            let is_called = self.look_now(rpc, Duration::from(left).min(PERIOD))?;
            let begin = rpc.now();
            let mut now = begin;
            while self.has_turns() && now.since(begin) < MOST_TURNS {
                let time = rpc.app().time(now);
                self.turn(rpc.app_mut(), time);
                now = rpc.now();
            }
            if is_called || now >= end || self.has_errands(now) || is_done() {
                return Ok(());
            }
        }
    }

    fn look_now<T: Open>(&mut self, rpc: &mut Rpc<T, Desk>, wait: Duration) -> io::Result<bool> {
        let now = rpc.now();
        let time = rpc.app().time(now);
        let is_called = self.look(wait, time)?;
        rpc.app_mut().on_time(now);
        Ok(is_called)
    }
}

#[cfg(test)]
mod tests;
