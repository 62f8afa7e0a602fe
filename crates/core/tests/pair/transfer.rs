//! Messages of many packets.

pub(crate) mod large;
mod pairs;
mod references;
mod witnesses;
