//! DPDK as a transport of Dunlin: a device that belongs to the process, which polls it, and no
//! kernel below (design §12).
//!
//! The crate is built without DPDK. At run time it loads `libdunlin_dpdk.so` from one of the places
//! that [`library`] lists. This library is a few hundred lines of C, which hand bursts over
//! (`native/`). `dunlin-packet` reads and writes frames, which have the form of `udp`'s packets: to
//! its peers an endpoint looks like one of `udp`. Since no kernel answers for the address of the
//! device, this crate answers questions of neighbours, and nothing else of IP; the control plane
//! uses another interface.
//!
//! Packets are copied into and out of the device's pool, so a burst is done when it returns (rule
//! S12). If the operator wants it, and the device can report which packets it has sent, the device
//! reads the data of long packets in the msgbufs. Unsafe code is in `ffi`, `eal`, `device`,
//! `leaving` and `transmit`.

mod auto;
mod bare;
mod connect;
mod copies;
mod device;
mod eal;
mod ffi;
mod inbox;
mod keeper;
pub mod leaving;
mod lend;
pub mod library;
mod link;
mod neighbours;
mod open;
mod port;
mod receive;
mod rules;
mod seats;
mod site;
mod sleep;
mod tally;
mod transmit;
mod ways;
mod words;

pub use auto::{AutoDpdk, AutoOptions, open_auto};
pub use bare::Bare;
pub use open::{Dpdk, Options};
pub use receive::DpdkRx;
pub use site::Site;
pub use transmit::DpdkTx;
