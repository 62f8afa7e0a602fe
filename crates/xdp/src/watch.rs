//! Notices that packets are no longer steered: the daemon that had the program has ended, or an
//! operator has detached the program.
//!
//! The kernel reports no event for that, and to ask it for each burst would cost too much. But then
//! all packets come through the socket. So the receiving half raises a doubt when packets come that
//! way, and the sending half asks at its next look at changes whether the interface still has the
//! program. Packets may come through the socket for other reasons for ever, so the number of looks
//! between two questions doubles, up to [`MOST`].
//!
//! Made by `open`. The receiving half has the [`Doubt`], the sending half the rest.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::roads::{Attached, Change, Road, Roads, Tables};

/// The most looks between two questions. Sixty-four bursts pass between two looks, so a question,
/// which takes the kernel some microseconds, comes once in four thousand bursts.
const MOST: u32 = 64;

/// Whether packets came through the socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubt(Arc<AtomicBool>);

impl Doubt {
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Reports which program an interface has.
pub(crate) trait Programs: Roads {
    /// The number of the program at interface `index`, or `Some(None)` if it has none. `None` if
    /// the kernel does not tell, or if the interface has several.
    #[expect(clippy::option_option, reason = "no answer differs from no program")]
    fn program(&mut self, index: u32) -> Option<Option<u32>>;
}

impl Programs for Tables {
    fn program(&mut self, index: u32) -> Option<Option<u32>> {
        match self.link(index).ok()?.program {
            Attached::Nothing => Some(None),
            Attached::Program(number, _) => Some(Some(number)),
            Attached::Several => None,
        }
    }
}

/// The kernel's tables. Reports one more change when packets are no longer steered.
#[derive(Debug)]
pub(crate) struct Watched<P> {
    tables: P,
    /// The interface at which the program is, and the number of the program.
    index: u32,
    program: Option<u32>,
    /// Whether the program was gone at the start, which is not reported yet.
    is_gone: bool,
    doubt: Doubt,
    /// Looks until the next question, and the number that the last question set.
    left: u32,
    pause: u32,
}

impl<P: Programs> Watched<P> {
    /// Watches the program that interface `index` has now. If it has none, the first change says
    /// so. The program is not watched if the kernel does not tell its number.
    pub(crate) fn new(mut tables: P, index: u32, doubt: Doubt) -> Self {
        let program = tables.program(index);
        Self {
            program: program.flatten(),
            is_gone: program == Some(None),
            tables,
            index,
            doubt,
            left: 0,
            pause: 0,
        }
    }

    fn ask(&mut self) -> Option<Change> {
        if std::mem::take(&mut self.is_gone) {
            return Some(Change::Unsteered);
        }
        if self.program.is_none() || !self.doubt.is_raised() {
            return None;
        }
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        self.doubt.settle();
        self.pause = (2 * self.pause).clamp(1, MOST);
        self.left = self.pause;
        let found = self.tables.program(self.index)?;
        (found != self.program).then(|| {
            self.program = None;
            Change::Unsteered
        })
    }
}

impl<P: Programs> Roads for Watched<P> {
    fn road(&mut self, to: IpAddr) -> io::Result<Option<Road>> {
        self.tables.road(to)
    }

    fn mtu(&mut self, to: IpAddr) -> io::Result<Option<u32>> {
        self.tables.mtu(to)
    }

    fn change(&mut self) -> Option<Change> {
        self.tables.change().or_else(|| self.ask())
    }
}

#[cfg(test)]
mod tests;
