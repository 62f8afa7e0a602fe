//! The server side: requests that the other side issues, from acceptance until their response is
//! known to have arrived. `inbound.rs` has the names of requests, `requests.rs` their state and
//! what happens to it.

pub(crate) mod inbound;
pub(crate) mod requests;
