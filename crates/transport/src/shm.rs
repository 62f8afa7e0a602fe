//! Shared memory: one ring for each direction of each pair of endpoints on a host (design §12,
//! `docs/decisions/shm-ring.md`). The endpoints are threads of one process or of several.
//!
//! From the inside out: `cells` is the memory of a ring and `ring` its protocol; `doorbell` shows
//! which rings have packets; `channel` puts two rings into shared `memory`; `rx` and `tx` are the
//! halves of an endpoint; `regions` and `bounce` serve data by reference; `offer`, `channels` and
//! `setup` connect endpoints, through `handing` if both are in one process; users open an
//! `endpoint` with `options`.
//!
//! ```
//! use dunlin_core::transport::{Rx, Tx, TxItem, MAX_INLINE};
//! use dunlin_msgbuf::BufRef;
//! use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
//! use dunlin_transport::shm::{Options, Shm};
//!
//! let (mut client, mut server) = (Shm::open(Options::default())?, Shm::open(Options::default())?);
//! let peer = |uid| PeerInfo {
//!     endpoint: EndpointUid([uid; 16]),
//!     same_host: true,
//!     same_process: true,
//!     proves: true,
//!     local: None,
//!     remote: None,
//! };
//! // The control plane carries the offer to the server and the answer back.
//! let (pending, offer) = Shm::offer(&mut client.rx, &mut client.tx, &peer(2))?;
//! let (_, answer) = Shm::accept(&mut server.rx, &mut server.tx, &peer(1), offer)?;
//! let to_server = Shm::complete(&mut client.rx, &mut client.tx, pending, answer)?;
//!
//! let mut item = TxItem {
//!     peer: to_server,
//!     inline_len: 5,
//!     inline: [0; MAX_INLINE],
//!     data: BufRef::EMPTY,
//! };
//! item.inline[..5].copy_from_slice(b"hello");
//! client.tx.burst(&[item]);
//! assert_eq!(server.rx.burst(), 1);
//! assert_eq!(server.rx.frame(0).bytes, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(loom))]
mod bounce;
mod cells;
#[cfg(not(loom))]
mod channel;
#[cfg(not(loom))]
mod channels;
#[cfg(not(loom))]
#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
#[cfg(not(loom))]
mod copy;
mod doorbell;
#[cfg(not(loom))]
mod endpoint;
#[cfg(not(loom))]
mod ffi;
#[cfg(not(loom))]
mod handing;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod offer;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod regions;
mod ring;
#[cfg(not(loom))]
mod rx;
#[cfg(not(loom))]
mod setup;
mod staged;
mod sync;
#[cfg(not(loom))]
mod tx;

#[cfg(not(loom))]
pub use endpoint::Shm;
#[cfg(not(loom))]
pub use options::{OpenError, Options};
#[cfg(not(loom))]
pub use rx::ShmRx;
#[cfg(not(loom))]
pub(crate) use rx::ShortFrames;
#[cfg(not(loom))]
pub use tx::ShmTx;
