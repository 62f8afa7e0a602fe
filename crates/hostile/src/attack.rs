//! The attackers. Each is a process that ends by itself and then reports its work. An attacker may
//! ruin its own sessions and memory; the server is not to blame for that.

pub(crate) mod blaster;
pub(crate) mod drills;
pub(crate) mod floods;
pub(crate) mod pawn;
pub(crate) mod scribbler;

use std::time::{Duration, Instant};

use harness::process::Role;

/// A kind of attacker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Attack {
    /// Random, mutated, forged and replayed packets to the data ports.
    Blaster,
    /// Connections, questions, cut-off messages and peers that do not read at the control port.
    Floods,
    /// A peer that writes into the memory which it shares with the server.
    Scribbler,
    /// Processes that are killed and stopped.
    Drills,
}

impl Attack {
    /// Every kind.
    pub(crate) const ALL: [Self; 4] = [Self::Blaster, Self::Floods, Self::Scribbler, Self::Drills];

    /// The name of this kind on the command line.
    pub(crate) const fn name(self) -> &'static str {
        self.role().name()
    }

    /// The process that carries it out.
    pub(crate) const fn role(self) -> Role {
        match self {
            Self::Blaster => blaster::ROLE,
            Self::Floods => floods::ROLE,
            Self::Scribbler => scribbler::ROLE,
            Self::Drills => drills::ROLE,
        }
    }
}

/// Divides the work of an attack into parts, one each millisecond, so that it keeps a given rate.
/// If a busy machine has delayed a part, that part is larger. Between parts the attack sleeps, so
/// it takes no more processor time than its rate needs.
struct Pace {
    begun: Instant,
    span: Duration,
    per_second: f64,
    given: u64,
}

/// Time between two parts.
const PART: Duration = Duration::from_millis(1);

impl Pace {
    /// Begins a pace that ends after `span`.
    fn begin(span: Duration, per_second: u32) -> Self {
        Self {
            begun: Instant::now(),
            span,
            per_second: per_second.into(),
            given: 0,
        }
    }

    /// Waits for the next part and returns its size; `None` when the time is over.
    fn next(&mut self) -> Option<u64> {
        std::thread::sleep(PART);
        self.due(self.begun.elapsed())
    }

    fn due(&mut self, elapsed: Duration) -> Option<u64> {
        if elapsed >= self.span {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "time and rate are not negative, and no run sends 2⁵² of anything"
        )]
        let due = (elapsed.as_secs_f64() * self.per_second) as u64;
        let part = due.saturating_sub(self.given);
        self.given = due;
        Some(part)
    }
}

#[cfg(test)]
mod tests;
