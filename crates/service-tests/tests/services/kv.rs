//! The key-value service.

mod bursts;
mod channels;
mod lossless;
mod small_messages;
mod transports;
