//! The planted bugs and differences by name (design §13). Without the feature `mutants` there are
//! none, and no value of [`Mutant`] exists.

#[cfg(feature = "mutants")]
use dunlin_core::mutant::Mutant as Planted;

/// Without the feature: nothing.
#[cfg(not(feature = "mutants"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {}

/// A planted bug that every endpoint of a run shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mutant(Planted);

#[cfg(feature = "mutants")]
impl Mutant {
    /// Every planted bug.
    pub fn all() -> Vec<Self> {
        Planted::ALL.iter().copied().map(Self).collect()
    }

    /// Every planted difference, which no checker sees.
    pub fn differences() -> Vec<Self> {
        Planted::DIFFERENCES.iter().copied().map(Self).collect()
    }

    /// The bug or difference with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Planted::from_name(name).map(Self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// As the endpoint's configuration wants it.
    pub(crate) fn planted(self) -> Planted {
        self.0
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

    /// The bug with this name: none in this build.
    pub fn from_name(_name: &str) -> Option<Self> {
        None
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {}
    }
}
