//! A tick that ends a wait for sockets, so that the wait needs no timeout of its own. With a
//! timeout, the kernel arms a timer at each wait and disarms it afterwards, for each command of a
//! client that sends one at a time. The ticker is armed only once in its period.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer of the kernel.
#[derive(Debug)]
pub(crate) struct Ticker(OwnedFd);

impl Ticker {
    /// Makes a timer that ticks in this period, and reports each tick with this token.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub(crate) fn new(period: Duration, registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let period = Timespec::try_from(period).map_err(|_| io::ErrorKind::InvalidInput)?;
        let ticks = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &ticks)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self(timer))
    }

    /// Takes a tick. The next one comes only after this call.
    pub(crate) fn on_tick(&self) {
        // This fails only if the tick was already taken.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}
