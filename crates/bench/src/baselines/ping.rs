//! The ping-pong that measures the state of the machine: one cache line goes back and forth, for a
//! few milliseconds, between the processors on which experiments measure. [`crate::harness::plan`]
//! and the comparison of builds play it right before and right after each measurement.

use std::time::Duration;

use super::shm_rtt::PingPong;
use harness::seat::Seats;

/// A packet that fits into one line.
const SIZE: u32 = 8;

/// How long one ping-pong lasts: thousands of round trips.
const SPAN: Duration = Duration::from_millis(4);

/// Plays ping-pong on request. Its processes start with the first game, and sleep between games.
#[derive(Debug, Default)]
pub struct Ping {
    game: Option<PingPong>,
}

impl Ping {
    /// The median round trip in ns; `None` if there is only one processor, which the two processes
    /// would share.
    ///
    /// # Errors
    /// [`harness::signal::Interrupted`]; or a process could not be started, failed or hung.
    pub fn now(&mut self) -> anyhow::Result<Option<f64>> {
        if Seats::pick().client.cpu.is_none() {
            return Ok(None);
        }
        let game = match &mut self.game {
            Some(game) => game,
            none => none.insert(PingPong::start(SIZE)?),
        };
        let played = game.play(SPAN);
        if played.is_err() {
            // The next game needs processes that run.
            self.game = None;
        }
        Ok(played?.first().copied())
    }
}
