//! Servers, and the faults that strike them.

use dunlin_core::Rng;

use crate::draw::Draw;

/// One server. A restart makes it another process.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    /// Grows with each restart.
    pub(crate) life: u64,
    pub(crate) is_up: bool,
    pub(crate) is_stopped: bool,
    pub(crate) is_draining: bool,
    pub(crate) is_listed: bool,
    pub(crate) precise: bool,
    pub(crate) endpoints: u32,
    pub(crate) window: usize,
    /// The longest time of a handler.
    pub(crate) takes_us: u32,
    /// How many of a hundred requests it refuses.
    pub(crate) refuses: u32,
    /// How many of a hundred accepted requests fail at it.
    pub(crate) fails: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The process ends without a goodbye.
    Crash(usize),
    /// The process stops, and later goes on.
    Stop(usize),
    Continue(usize),
    Drain(usize),
    /// Another process starts in place of one that has ended.
    Start(usize),
    /// The list of addresses loses the server, or gets it back.
    List(usize, bool),
    /// All faults end.
    Heal,
}

impl Fault {
    pub(crate) fn draw(server: usize, rng: &mut Rng) -> Self {
        match rng.below(5) {
            0 => Self::Crash(server),
            1 => Self::Stop(server),
            2 => Self::Drain(server),
            3 => Self::List(server, false),
            _ => Self::List(server, true),
        }
    }
}

impl Server {
    pub(crate) fn draw(at: u32, rng: &mut Rng) -> Self {
        Self {
            name: format!("server-{at}"),
            life: 0,
            is_up: true,
            is_stopped: false,
            is_draining: false,
            is_listed: true,
            precise: rng.percent(70),
            endpoints: 1 + rng.below(4),
            window: 1 + rng.below(4) as usize,
            takes_us: [500, 5_000, 300_000][rng.below(3) as usize],
            refuses: [0, 0, 5, 90][rng.below(4) as usize],
            fails: [0, 5][rng.below(2) as usize],
        }
    }

    /// The number of its process.
    pub(crate) fn process(&self, at: usize) -> u64 {
        self.life * 1000 + at as u64
    }
}
