//! Messages of more than one packet, at both sides.
//!
//! `transfers.rs` is the client's part: requests leave in `transfers/sending.rs`, and responses are
//! asked for there and put together in `transfers/receiving.rs`. `transfers/turns.rs` decides which
//! message of a session sends next, `transfers/silence.rs` does what is due if nothing comes.
//! `scoreboard.rs` knows what of one message has left and arrived, `word.rs` whether the other side
//! of a session answers.
//!
//! `reassembly.rs` is the server's part: it puts large requests together, and `endpoint/arrived.rs`
//! hands them to their handlers. A large response leaves in `server/requests/parts.rs`, packet by
//! packet as the client asks for it.

mod packet_set;
mod progress;
pub(crate) mod reassembly;
pub(crate) mod scoreboard;
pub(crate) mod transfers;
pub(crate) mod word;
