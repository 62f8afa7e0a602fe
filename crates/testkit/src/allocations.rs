//! Proofs that, once endpoints are set up, an RPC allocates nothing, over any transport. Each kind
//! of call runs until all tables have grown to their size, and then 10 000 times more while the
//! allocator counts. A test installs [`crate::counting::Counting`] and calls
//! [`prove_every_kind`](crate::prove_every_kind).

pub mod kinds;
mod lossy;
mod memory;
mod proof;
mod world;

pub use lossy::{Lossy, LossyTx};
pub use memory::{Memory, MemoryRx, MemoryTx};
pub use proof::prove;
pub use world::{App, World};
