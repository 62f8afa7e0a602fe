//! Packets that are wrong, or that come at the wrong time.

mod packets;
mod strays;
