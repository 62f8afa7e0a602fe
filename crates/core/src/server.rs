//! The server side: requests that peers issue, from acceptance until their response is known to
//! have arrived. `requests.rs` has their state, `server/events.rs` brings events to it and to
//! reassembly, and `inbound.rs` has the values that these exchange.

pub(crate) mod events;
pub(crate) mod inbound;
pub(crate) mod requests;
