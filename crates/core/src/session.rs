//! Sessions: their table, how they open and close, and their round trips.

pub(crate) mod challenge;
pub(crate) mod lifecycle;
pub(crate) mod line;
mod marks;
pub(crate) mod proof;
pub(crate) mod rtt;
pub(crate) mod slots;
pub(crate) mod table;
pub(crate) mod terms;
pub(crate) mod token_check;
