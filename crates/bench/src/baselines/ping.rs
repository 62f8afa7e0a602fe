//! The ping-pong that says in which state the machine is: one cache line between the processors on
//! which experiments measure, for a few milliseconds. Played by [`crate::harness::plan`] and by
//! the comparison of builds directly before and after each measurement.

use std::time::Duration;

use super::shm_rtt::PingPong;
use harness::seat::Seats;

/// A packet that fits into one line.
const SIZE: u32 = 8;

/// How long one takes: thousands of round trips.
const SPAN: Duration = Duration::from_millis(4);

/// Plays whenever it is asked to. Its processes are started by the first time, and sleep between.
#[derive(Debug, Default)]
pub struct Ping {
    game: Option<PingPong>,
}

impl Ping {
    /// The median round trip in ns; `None` where there is one processor, which two processes can
    /// only share.
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
        Ok(game.play(SPAN)?.first().copied())
    }
}
