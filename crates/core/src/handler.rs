//! The user's functions: their table, how they run, and their arguments.

pub(crate) mod background;
pub(crate) mod batch;
pub(crate) mod context;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod table;
