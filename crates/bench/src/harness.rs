//! The parts that experiments share: probes of experiments and baselines, cases, rounds, and
//! processes in which the library under test runs.

pub mod case;
pub mod experiment;
#[cfg(feature = "kv")]
pub(crate) mod items;
#[cfg(feature = "full")]
pub mod link;
#[cfg(feature = "full")]
pub(crate) mod lossy;
pub mod plan;
pub mod probe;
#[cfg(any(feature = "kv", feature = "replica"))]
pub(crate) mod program;
#[cfg(any(feature = "kv", feature = "replica"))]
pub(crate) mod resident;
pub(crate) mod rtt;
#[cfg(feature = "full")]
pub(crate) mod scenario;
pub mod selection;
pub(crate) mod subject;
pub(crate) mod ticks;
pub mod transport;
pub(crate) mod work;
