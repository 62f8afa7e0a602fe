//! Requests, from the server's side.

mod memory;
mod quiet;
