//! Handlers, and the requests that they get.

mod again;
mod echoes;
mod handlers;
mod slow;
