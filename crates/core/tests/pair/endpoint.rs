//! The endpoint as a whole: its event loop, its drain, and handles of other endpoints.

mod drain;
mod handles;
mod regressions;
