//! The planted bugs of channels, by the part that has them: the machine of `dunlin_channel`, or the
//! servers, clients and stage of this folder. The checkers must find each. Only
//! [`super::run::Options`], with the feature `mutants`, plants any.

#[cfg(feature = "mutants")]
use dunlin_channel::mutant::Mutant as InMachine;

/// A planted bug of a process, or of the stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bug {
    /// The handlers of a draining server accept new requests.
    DrainTakesRequests,
    /// A draining server accepts new sessions.
    DrainTakesSessions,
    /// A client learns late that its attempts at a failed server have ended.
    LateEndOfLost,
}

#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    Machine(InMachine),
    World(Bug),
}

/// A planted bug.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutant(Planted);

#[cfg(feature = "mutants")]
impl Mutant {
    /// Every planted bug.
    pub fn all() -> impl Iterator<Item = Self> {
        let machine = InMachine::ALL.iter().copied().map(Planted::Machine);
        let world = Bug::ALL.into_iter().map(Planted::World);
        machine.chain(world).map(Self)
    }

    /// Finds the bug with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|mutant| mutant.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Planted::Machine(mutant) => mutant.name(),
            Planted::World(Bug::DrainTakesRequests) => "drain-takes-requests",
            Planted::World(Bug::DrainTakesSessions) => "drain-takes-sessions",
            Planted::World(Bug::LateEndOfLost) => "late-end-of-lost",
        }
    }

    /// The bug of the machine, or the bug of a process or the stage.
    pub(super) fn parts(self) -> (Option<InMachine>, Option<Bug>) {
        match self.0 {
            Planted::Machine(mutant) => (Some(mutant), None),
            Planted::World(bug) => (None, Some(bug)),
        }
    }
}

#[cfg(feature = "mutants")]
impl Bug {
    const ALL: [Self; 3] = [
        Self::DrainTakesRequests,
        Self::DrainTakesSessions,
        Self::LateEndOfLost,
    ];
}
