//! The Dunlin endpoint as a state machine without input or output.
#![forbid(unsafe_code)]

pub mod time;
pub mod transport;

pub use time::{Clock, Nanos};
