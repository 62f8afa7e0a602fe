//! A table beside a model of it (a `BTreeMap`), operation by operation.
//!
//! The model does not know when memory is used up. It learns from the table which items leave, and
//! holds that against what may happen: only a cache evicts, only what has expired expires, and what
//! is gone is never seen again. Everything else the model predicts: each result, each value, each
//! mark, each version. At the end, the table's own structure is walked (`audit.rs`).

mod audit;
mod driver;
mod model;
#[cfg(feature = "mutants")]
mod mutants;
mod operation;

mod tests;
