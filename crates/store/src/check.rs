//! A table, compared with a model of it (a `BTreeMap`) operation by operation.
//!
//! The model does not know when memory is used up. The table reports which items leave, and the
//! model checks that they may: only a cache evicts, only an expired item expires, and an item that
//! is gone is never seen again. The model predicts everything else: each result, each value, each
//! mark, each version. At the end, `audit.rs` walks the table's own structure.

mod audit;
mod driver;
mod model;
#[cfg(feature = "mutants")]
mod mutants;
mod operation;
mod parts;

mod tests;
