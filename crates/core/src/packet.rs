//! Packets: from the bytes of a frame to packets of open sessions (`receive.rs`), and on their way
//! out (`packet/tx_queue.rs`).

pub(crate) mod receive;
pub(crate) mod tx_queue;
