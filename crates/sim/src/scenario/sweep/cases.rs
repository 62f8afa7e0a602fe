//! The grids: the points that the sweep runs.
//!
//! Called by the program `congestion` and by tests.

use super::{Case, Family};

/// A selection of the sweep's points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grid {
    /// The points at which congestion control is most likely to fail. Takes some seconds.
    Short,
    /// All buffers and numbers of senders. Takes minutes with one seed, the better part of an hour
    /// with ten.
    Whole,
}

/// The points of a family, all with this seed.
pub fn cases(family: Family, grid: Grid, seed: u64) -> Vec<Case> {
    let (rates, round_trips, buffers) = axes(grid);
    let mut all = Vec::new();
    if family == Family::Incast {
        all.push(crowd(seed));
    }
    for &gbps in rates {
        for &rtt_us in round_trips {
            for &buffer_kb in buffers {
                for (senders, in_flight) in senders(family, grid, gbps) {
                    all.push(Case {
                        family,
                        gbps,
                        rtt_us,
                        buffer_kb,
                        senders,
                        in_flight,
                        measured: false,
                        noise_us: 0,
                        seed,
                    });
                }
            }
        }
    }
    all
}

/// The incast of eRPC §6.5 with the most senders; their windows must fall to a tenth of a packet.
fn crowd(seed: u64) -> Case {
    Case {
        family: Family::Incast,
        gbps: 25,
        rtt_us: 6,
        buffer_kb: 12 << 10,
        senders: 1000,
        in_flight: 1,
        measured: false,
        noise_us: 0,
        seed,
    }
}

fn axes(grid: Grid) -> (&'static [u32], &'static [u32], &'static [u32]) {
    match grid {
        Grid::Short => (&[10, 100], &[6, 20], &[100]),
        Grid::Whole => (&[10, 25, 40, 100], &[6, 20], &[100, 200, 500, 2000]),
    }
}

/// Numbers of senders, with the requests that each has under way.
fn senders(family: Family, grid: Grid, gbps: u32) -> Vec<(usize, u32)> {
    let many: &[usize] = match (family, grid, gbps) {
        (Family::Incast, Grid::Whole, _) => &[2, 3, 5, 10, 20, 30, 70, 150],
        (Family::Incast, Grid::Short, 100) => &[2, 150],
        (Family::Incast, Grid::Short, _) => &[3, 30, 150],
        (Family::Late, Grid::Whole, _) => &[1, 2, 3, 5, 10, 20, 30],
        (Family::Two, Grid::Whole, _) => &[2, 5, 10],
        (Family::Two, Grid::Short, _) => &[2],
        (Family::Echo, Grid::Whole, ..25) => &[2, 3, 5, 10, 20, 30],
        (Family::Echo, Grid::Whole, _) => &[2, 3, 5, 10, 20, 30, 70, 150],
        (_, Grid::Whole, _) => &[2, 5, 10, 30],
        (_, Grid::Short, _) => &[3, 30],
    };
    let in_flight: &[u32] = match (family, grid) {
        (Family::Echo, Grid::Whole) => &[1, 2, 4],
        (Family::Echo, Grid::Short) => &[1, 2],
        _ => &[1],
    };
    // 70 senders are left out at 10 Gb/s: their credits exceed windows of one packet each.
    let fits = |senders: &&usize| !(family == Family::Incast && gbps < 25 && **senders == 70);
    let pairs = many.iter().filter(fits);
    pairs
        .flat_map(|senders| in_flight.iter().map(|in_flight| (*senders, *in_flight)))
        .collect()
}
