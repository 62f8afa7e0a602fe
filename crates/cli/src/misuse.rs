//! A request that cannot be carried out like this: exit code 2, as for an unknown option.

/// The error, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) String);
