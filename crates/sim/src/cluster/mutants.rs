//! The planted bugs and differences by name (design §13). Without the feature `mutants` there are
//! none, and no value of [`Mutant`] exists.

use dunlin_core::Law;

#[cfg(feature = "mutants")]
use dunlin_control::mutant::Mutant as InControl;
#[cfg(feature = "mutants")]
use dunlin_core::mutant::Mutant as InCore;

/// A planted bug, by the crate that contains it.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    Core(InCore),
    Control(InControl),
}

/// Without the feature there is no planted bug.
#[cfg(not(feature = "mutants"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {}

/// A planted bug that every endpoint of a run has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutant(Planted);

#[cfg(feature = "mutants")]
impl Mutant {
    /// Every planted bug.
    pub fn all() -> Vec<Self> {
        let core = InCore::ALL.iter().copied().map(Planted::Core);
        let control = InControl::ALL.iter().copied().map(Planted::Control);
        core.chain(control).map(Self).collect()
    }

    /// Every planted difference; no checker finds one.
    pub fn differences() -> Vec<Self> {
        let core = InCore::DIFFERENCES.iter().copied();
        core.map(Planted::Core).map(Self).collect()
    }

    /// Every planted breach, with the law that it breaks; only the endpoints' own checks find one.
    pub fn breaches() -> Vec<(Self, Law)> {
        let core = InCore::BREACHES.iter().copied();
        let core = core.map(|(mutant, law)| (Self(Planted::Core(mutant)), law));
        core.collect()
    }

    /// The bug, difference or breach with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let core = InCore::from_name(name).map(Planted::Core);
        let control = || InControl::from_name(name).map(Planted::Control);
        core.or_else(control).map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Planted::Core(mutant) => mutant.name(),
            Planted::Control(mutant) => mutant.name(),
        }
    }

    /// The value for the endpoint's configuration.
    pub(crate) fn in_core(self) -> Option<InCore> {
        match self.0 {
            Planted::Core(mutant) => Some(mutant),
            Planted::Control(_) => None,
        }
    }

    /// The value for the control plane.
    pub(crate) fn in_control(self) -> Option<InControl> {
        match self.0 {
            Planted::Core(_) => None,
            Planted::Control(mutant) => Some(mutant),
        }
    }
}

#[cfg(not(feature = "mutants"))]
impl Mutant {
    /// Every planted bug: none in this build.
    pub fn all() -> Vec<Self> {
        Vec::new()
    }

    /// Every planted difference: none in this build.
    pub fn differences() -> Vec<Self> {
        Vec::new()
    }

    /// Every planted breach of a law: none in this build.
    pub fn breaches() -> Vec<(Self, Law)> {
        Vec::new()
    }

    /// Finds nothing: this build has no bugs.
    pub fn from_name(_name: &str) -> Option<Self> {
        None
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {}
    }
}
