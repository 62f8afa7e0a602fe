//! Packets: from the bytes of a frame to packets of open sessions (`receive.rs`), and on their way
//! out (`packet/outbox.rs`); what they leave behind is held until the transport is done with it
//! (`packet/held_until_done.rs`).

pub(crate) mod held_until_done;
pub(crate) mod outbox;
pub(crate) mod receive;
pub(crate) mod words;
