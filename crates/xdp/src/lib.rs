//! AF_XDP as a transport of Dunlin: packets bypass the kernel's network stack, and the kernel keeps
//! the interface (design §12).
//!
//! The crate uses no library for this but `libc`. The raw parts are [`ring`] (the four rings of a
//! socket), [`umem`] (the region of frames), [`socket`], [`steering`] (the BPF program, assembled
//! here, and its maps); `dunlin-packet` reads and writes frames. Unsafe code is in
//! `ffi`, `mapping`, `ring`, `umem` and `steering`.

#[cfg(not(loom))]
mod ask;
#[cfg(not(loom))]
mod auto;
#[cfg(feature = "check")]
#[cfg(not(loom))]
pub mod check;
#[cfg(not(loom))]
mod connect;
#[cfg(not(loom))]
pub mod device;
#[cfg(not(loom))]
mod entries;
#[cfg(not(loom))]
mod ffi;
mod mapping;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod queue;
#[cfg(not(loom))]
mod receive;
#[cfg(not(loom))]
mod refusal;
pub mod ring;
#[cfg(not(loom))]
pub mod roads;
#[cfg(not(loom))]
pub mod setup;
mod shared;
#[cfg(not(loom))]
mod sharing;
#[cfg(not(loom))]
pub mod socket;
#[cfg(not(loom))]
pub mod steering;
mod sync;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
#[cfg(not(loom))]
mod transmit;
#[cfg(not(loom))]
pub mod umem;
#[cfg(not(loom))]
mod watch;
#[cfg(not(loom))]
mod ways;
#[cfg(feature = "wire")]
#[cfg(not(loom))]
pub mod wire;

#[cfg(not(loom))]
pub use auto::{AutoOptions, AutoXdp, open_auto};
#[cfg(not(loom))]
pub use open::{Options, Xdp};
#[cfg(not(loom))]
pub use receive::XdpRx;
#[cfg(not(loom))]
pub use steering::Mode;
#[cfg(not(loom))]
pub use transmit::XdpTx;
