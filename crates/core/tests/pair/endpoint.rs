//! The endpoint as a whole: its event loop, its drain, handles of other endpoints, and a transport
//! that was used before.

mod drain;
mod handles;
mod regressions;
mod used_transport;
