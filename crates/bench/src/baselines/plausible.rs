//! The values that a baseline must reach for its rows to count (design §14). A quiet, current
//! machine reaches all of them; if a baseline misses one, other work on the processors disturbed
//! it.

/// Largest plausible round trip of one cache line between two processes, in ns.
const SHM_RTT_NS: f64 = 320.0;

/// The most time, in ns, that each further cache line of a packet may add to that round trip, both
/// directions together. The processor fetches these lines in parallel, so each costs less than the
/// first.
const SHM_RTT_LINE_NS: f64 = 60.0;

/// Smallest plausible rate of a ring of cache lines, in cells per second.
const RING_CELLS: f64 = 40e6;

/// Smallest plausible rate of requests and answers of one line over two rings, in exchanges per
/// second.
const EXCHANGES: f64 = 10e6;

/// Smallest plausible rate of a copy, in GB/s.
const COPY_GB: f64 = 9.0;

/// Whether this is a plausible round trip through shared memory, of packets of `lines` cache lines.
pub(crate) fn shm_rtt(p50_ns: f64, lines: u32) -> bool {
    p50_ns <= SHM_RTT_NS + SHM_RTT_LINE_NS * f64::from(lines.saturating_sub(1))
}

/// Whether this is a plausible rate of a ring between two processes.
pub(crate) fn ring(cells_per_s: f64) -> bool {
    cells_per_s >= RING_CELLS
}

/// Whether this is a plausible rate of exchanges between two processes, with messages of `lines`
/// cache lines. `sides`: the number of processes that make requests.
pub(crate) fn exchange(exchanges_per_s: f64, lines: usize, sides: u32) -> bool {
    // Messages have few lines, so the conversion loses nothing.
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    exchanges_per_s * f64::from(lines) * f64::from(sides) >= EXCHANGES
}

/// Whether this is a plausible rate of a copy of memory.
pub(crate) fn copy(gb_per_s: f64) -> bool {
    gb_per_s >= COPY_GB
}

#[cfg(test)]
mod tests;
