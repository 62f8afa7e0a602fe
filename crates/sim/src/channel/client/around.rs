//! The parts of a client that its channels share: the endpoint with its sessions, the trunks, and
//! the judge of turns. Its fields belong to the client, which lends all of them to a channel.

use dunlin_channel::Trunks;
use dunlin_core::Nanos;

use super::super::desk::Line;
use super::super::plan::Plan;
use super::lines::Lines;
use super::turns::Turns;

pub(super) struct Around {
    pub(super) lines: Lines,
    pub(super) trunks: Trunks<Line>,
    pub(super) turns: Turns,
    pub(super) now: Nanos,
}

impl Around {
    pub(super) fn new(lines: Lines, plan: &Plan) -> Self {
        #[cfg(feature = "mutants")]
        let trunks = Trunks::with(plan.channel.mutant);
        #[cfg(not(feature = "mutants"))]
        let trunks = Trunks::default();
        Self {
            lines,
            trunks,
            turns: Turns::new(plan.window),
            now: Nanos::ZERO,
        }
    }
}
