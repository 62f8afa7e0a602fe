//! A request that cannot be carried out in this way: exit code 2, as for an option that is not
//! known.

/// Says what was wrong, and what to do instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) String);
