//! The server side: requests that the other side issues, from acceptance until their response is
//! known to have arrived. `server/work.rs` has one request's state, `requests.rs` what its packets
//! do.

pub(crate) mod requests;
pub(crate) mod work;
