//! When to poll the socket, for a transport that also has a faster way to receive: shared memory,
//! or the rings of AF_XDP.
//!
//! Polling the socket costs a system call (200 to 300 ns if it is empty), polling shared memory a
//! few nanoseconds. So each burst spends part of a budget, and the endpoint polls the socket when
//! the budget is used up: after 32 bursts that found packets in shared memory (design §12), or
//! after 1024 that found none. 1024 such bursts take some ten microseconds, so the socket takes
//! only a few percent of the time. Two cases differ:
//! - if datagrams came lately, or no peer uses shared memory, every burst that finds nothing uses
//!   up the budget, because then the latency of UDP counts;
//! - if no peer uses UDP and none knows our address, the budget is never used up.
//!
//! If a poll costs no system call ([`Turns::with_cheap_looks`]), every burst first polls the
//! transport in the socket's place, unless the burst before it found packets there.
//!
//! Pure; called for each burst, and when peers come and go, by `auto` and by `dunlin-xdp`.

/// Idle bursts between two polls of the socket.
const BUDGET: u32 = 1024;
/// The cost of a burst that found packets in shared memory: the 32nd uses up the budget.
const BUSY_COST: u32 = BUDGET / 32;
/// Number of empty polls of the socket after which datagrams no longer count as recent: about 60
/// µs, longer than a round trip in a datacenter.
const RECENT: u32 = 256;

/// The budget of bursts without a poll of the socket. "Shared memory" here stands for any faster
/// way to receive.
///
/// ```
/// let mut turns = dunlin_transport::turns::Turns::new();
/// turns.on_peers(true, true);
/// let busy = (0..).take_while(|_| { turns.on_busy(); !turns.is_due() }).count();
/// assert_eq!(busy, 31);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    left: u32,
    /// The cost of a burst that found nothing, and of one that found packets.
    idle_cost: u32,
    busy_cost: u32,
    /// Empty polls that are left before datagrams no longer count as recent.
    recent: u32,
    shm_used: bool,
    udp_used: bool,
    looks_are_cheap: bool,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

impl Turns {
    /// The turns of an endpoint without peers.
    pub const fn new() -> Self {
        let (shm_used, udp_used) = (false, false);
        Self {
            left: BUDGET,
            idle_cost: 0,
            busy_cost: 0,
            recent: 0,
            shm_used,
            udp_used,
            looks_are_cheap: false,
        }
    }

    /// The turns of an endpoint without peers, with a transport in the socket's place that can be
    /// polled without a system call.
    pub const fn with_cheap_looks() -> Self {
        let mut turns = Self::new();
        turns.looks_are_cheap = true;
        turns
    }

    /// Notes that peers have come or gone. Each argument is true if a peer may use the transport to
    /// reach us.
    pub fn on_peers(&mut self, shm_used: bool, udp_used: bool) {
        self.shm_used = shm_used;
        self.udp_used = udp_used;
        self.set_costs();
    }

    /// Makes the next burst poll the socket, where packets may wait whether or not a peer uses UDP.
    pub fn on_doubt(&mut self) {
        self.left = 0;
    }

    /// True if this burst must poll the socket first.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.left == 0
    }

    /// Notes that the burst found packets in shared memory.
    #[inline]
    pub fn on_busy(&mut self) {
        self.left = self.left.saturating_sub(self.busy_cost);
    }

    /// Notes that the burst found no packets in shared memory.
    #[inline]
    pub fn on_idle(&mut self) {
        self.left = self.left.saturating_sub(self.idle_cost);
    }

    /// Notes a poll of the socket.
    pub fn on_look(&mut self, found: bool) {
        let before = self.recent;
        self.recent = if found {
            RECENT
        } else {
            before.saturating_sub(1)
        };
        self.left = BUDGET;
        if (before == 0) != (self.recent == 0) {
            self.set_costs();
        }
    }

    fn set_costs(&mut self) {
        self.busy_cost = match self.udp_used {
            true if self.looks_are_cheap => BUDGET,
            true => BUSY_COST,
            false => 0,
        };
        self.idle_cost = match self.udp_used {
            true if self.recent > 0 || !self.shm_used || self.looks_are_cheap => BUDGET,
            true => 1,
            false => 0,
        };
    }
}

#[cfg(test)]
mod tests;
