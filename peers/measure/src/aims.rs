//! The aims of channels and servers: ratios between rows of one run, asked and reached. Called by
//! `main` and `table`. The tests are with those of the program that builds this one
//! (`peers/src/tests/aims.rs`), which continuous integration runs.

use crate::args::Name;

/// Bytes of a message to which the aims apply.
pub(crate) const SIZE: usize = 32;

/// Valid rounds that a judgement needs.
pub(crate) const ROUNDS: usize = 7;

/// A figure of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Figure {
    /// The median with one call in flight.
    Median,
    /// Calls a second, with 64 in flight.
    Rate,
    /// Processor time of both sides a call, with 64 in flight.
    Cpu,
    /// System calls of both sides a call, with 64 in flight.
    SystemCalls,
}

/// A limit for a ratio.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A ratio between a figure of a peer and the same figure of others.
#[derive(Clone, Copy, Debug)]
struct Aim {
    of: Name,
    figure: Figure,
    /// The figure is divided by this sum; if that is empty, by 1.
    over: &'static [(f64, Name)],
    limit: Limit,
}

/// A row of the run, as the aims need it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Reached {
    pub(crate) median: f64,
    /// The rounds from which the median comes; 0 if they are not valid.
    pub(crate) valid_rounds: usize,
}

const fn aim(of: Name, figure: Figure, over: &'static [(f64, Name)], limit: Limit) -> Aim {
    Aim {
        of,
        figure,
        over,
        limit,
    }
}

use Figure::{Cpu, Median, Rate, SystemCalls};
use Limit::{AtLeast, AtMost};
use Name::{
    DunlinShm, DunlinShmAsync, DunlinShmChannel, DunlinShmServer, DunlinShmServerTokio,
    DunlinShmServerTyped, DunlinShmTyped, DunlinUdpChannel, Futex, Tarpc, Tonic,
};

const TONIC: &[(f64, Name)] = &[(1.0, Tonic)];
const TARPC: &[(f64, Name)] = &[(1.0, Tarpc)];

const AIMS: [Aim; 15] = [
    aim(
        DunlinShmChannel,
        Median,
        &[(1.0, DunlinShmAsync), (1.5, Futex)],
        AtMost(1.0),
    ),
    aim(DunlinShmChannel, Median, TONIC, AtMost(1.0 / 8.0)),
    aim(DunlinUdpChannel, Median, TONIC, AtMost(1.0 / 4.0)),
    aim(DunlinShmChannel, Rate, TONIC, AtLeast(12.0)),
    aim(DunlinShmChannel, Rate, TARPC, AtLeast(3.0)),
    aim(DunlinUdpChannel, Rate, TONIC, AtLeast(8.0)),
    aim(DunlinUdpChannel, Rate, TARPC, AtLeast(2.0)),
    aim(DunlinShmChannel, Cpu, TONIC, AtMost(1.0 / 4.0)),
    aim(DunlinUdpChannel, Cpu, TONIC, AtMost(1.0 / 4.0)),
    aim(DunlinShmChannel, SystemCalls, &[], AtMost(0.2)),
    aim(DunlinUdpChannel, SystemCalls, &[], AtMost(0.2)),
    aim(DunlinShmServer, Rate, &[(1.0, DunlinShm)], AtLeast(0.97)),
    aim(
        DunlinShmServerTyped,
        Rate,
        &[(1.0, DunlinShmTyped)],
        AtLeast(0.97),
    ),
    aim(DunlinShmServerTokio, Rate, TONIC, AtLeast(5.0)),
    aim(DunlinShmServerTokio, SystemCalls, &[], AtMost(0.2)),
];

/// Whether an aim needs this peer.
pub(crate) fn need(peer: Name) -> bool {
    let needs = |aim: &Aim| aim.of == peer || aim.over.iter().any(|(_, other)| *other == peer);
    AIMS.iter().any(needs)
}

/// A line for each aim.
pub(crate) fn render(find: impl Fn(Name, Figure) -> Option<Reached>) -> String {
    let lines: String = AIMS.iter().map(|aim| aim.line(&find)).collect();
    let title = format!("aims at {SIZE} B");
    format!("\n{title:<64}{:>10}{:>10}\n{lines}", "asked", "reached")
}

impl Aim {
    fn line(&self, find: impl Fn(Name, Figure) -> Option<Reached>) -> String {
        let (sign, limit) = match self.limit {
            AtMost(limit) => ("≤", limit),
            AtLeast(limit) => ("≥", limit),
        };
        let (what, limit_text) = (self.what(), format!("{sign} {limit:.3}"));
        let judged = match self.ratio(find) {
            None => format!("{:>10}  INVALID: not measured", ""),
            Some((ratio, rounds)) => {
                let is_reached = match self.limit {
                    AtMost(limit) => ratio <= limit,
                    AtLeast(limit) => ratio >= limit,
                };
                let verdict = match (rounds < ROUNDS, is_reached) {
                    (true, _) => format!("  INVALID: {rounds} valid rounds, not {ROUNDS}"),
                    (false, true) => String::new(),
                    (false, false) => "  MISSED".to_owned(),
                };
                format!("{ratio:>10.3}{verdict}")
            }
        };
        format!("{what:<64}{limit_text:>10}{judged}\n")
    }

    /// The ratio, and the valid rounds of the row that has fewest; `None`: a row is missing.
    fn ratio(&self, find: impl Fn(Name, Figure) -> Option<Reached>) -> Option<(f64, usize)> {
        let own = find(self.of, self.figure)?;
        let (mut base, mut rounds) = (0.0, own.valid_rounds);
        for (factor, other) in self.over {
            let other = find(*other, self.figure)?;
            base += factor * other.median;
            rounds = rounds.min(other.valid_rounds);
        }
        let ratio = match self.over {
            [] => own.median,
            _ => own.median / base,
        };
        Some((ratio, rounds))
    }

    fn what(&self) -> String {
        let figure = match self.figure {
            Median => "median",
            Rate => "rate",
            Cpu => "processor time a call",
            SystemCalls => "system calls a call",
        };
        let over = self.over.iter().map(|(factor, name)| match factor {
            1.0 => name.text(),
            _ => format!("{factor} × {}", name.text()),
        });
        let over: Vec<String> = over.collect();
        match self.over {
            [] => format!("{}: {figure}", self.of.text()),
            _ => format!("{}: {figure}, over {}", self.of.text(), over.join(" + ")),
        }
    }
}
