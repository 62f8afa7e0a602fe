//! Handlers, and the requests that they get.

mod again;
mod batches;
mod echoes;
mod handlers;
mod slow;
