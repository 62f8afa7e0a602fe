//! Compares a table, operation by operation, with a model of it (a `BTreeMap`).
//!
//! The model does not know when memory is used up. The table reports which items leave, and the
//! model checks that they may: only a cache evicts, only an expired item expires, and an item that
//! has left is never seen again. The model predicts everything else: each result, value, mark and
//! version. At the end, `audit.rs` walks the table's own structure.

mod audit;
mod driver;
mod model;
#[cfg(feature = "mutants")]
mod mutants;
mod operation;
mod parts;
mod scan;

mod tests;
