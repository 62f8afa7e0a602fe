//! Messages of more than one packet, at both sides.
//!
//! `transfers.rs` is the client's part: `transfers/sending.rs` sends requests and asks for
//! responses, and `transfers/large_responses.rs` puts the responses together. `transfers/turns.rs`
//! decides which message of a session sends next, and `transfers/silence.rs` acts when no answer
//! comes. `scoreboard.rs` records which packets of one message have left and arrived, `probes.rs`
//! the probes of its last packets, and `word.rs` whether the peer of a session answers.
//!
//! `reassembly.rs` is the server's part: it puts large requests together. `arrivals.rs` records
//! which of their packets have come, and `endpoint/arrived.rs` runs their handlers. A large
//! response leaves from `server/requests/parts.rs`, packet by packet as the client asks for it.

mod arrivals;
mod packet_set;
mod probes;
mod progress;
pub(crate) mod reassembly;
pub(crate) mod scoreboard;
pub(crate) mod transfers;
pub(crate) mod word;
