//! Packets: from the bytes of a frame to packets of open sessions (`receive.rs`), and on their way
//! out (`packet/outbox.rs`).

pub(crate) mod outbox;
pub(crate) mod receive;
pub(crate) mod words;
