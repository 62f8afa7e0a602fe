//! Message buffers of Dunlin: registered memory regions, hugepages, and ownership of the bytes of
//! messages (design §8, eRPC §4.2).
//!
//! A [`Pool`] belongs to one endpoint and hands out [`MsgBuf`]s, which own their bytes. Core gives
//! a transport a [`BufRef`]: plain integers that name bytes of a msgbuf while it is lent. The
//! transport finds the bytes with [`regions`], which refuses a name that has outlived its msgbuf.
//!
//! Of the crates below the endpoint's protocol, this is the only one with unsafe code. That code is
//! sound because blocks are disjoint and have one owner each (`pool`, `buf`), regions outlive their
//! msgbufs (`home`), and a generation matches only while its block is lent (`region`).
//! [`Rows`] is the memory of an endpoint's tables.
//!
//! ```
//! use dunlin_msgbuf::{Pool, PoolConfig};
//!
//! let mut pool = Pool::new(PoolConfig::default())?;
//! let mut request = pool.alloc(5).expect("a new pool has room");
//! request.fill(b"hello").expect("it has five bytes");
//! let lent = request.lend(); // to a transport
//! assert_eq!(lent.len(), 5);
//! request.revoke(); // the transport is done
//! pool.recycle(request);
//! # Ok::<(), dunlin_msgbuf::PoolError>(())
//! ```

mod ascii;
mod block;
mod buf;
mod config;
mod copy;
mod errors;
mod extent;
mod home;
mod large;
mod layout;
mod name;
mod pair;
mod peer;
mod pool;
mod prefetch;
mod region;
pub mod regions;
mod rows;
mod sys;
mod table;

pub use ascii::Texts;
pub use buf::MsgBuf;
pub use config::{Hugepages, PoolConfig, PoolError};
pub use copy::{fresh_chunks, fresh_two, fresh_usual};
pub use errors::{AllocError, MapError, TooLong};
pub use extent::Extent;
pub use layout::{HEADROOM, MAX_MESSAGE, MIN_DATA_SIZE};
pub use name::{BufRef, REF_LEN, RegionId};
pub use pair::{PAIR, Pair};
pub use peer::{PeerBytes, PeerRegion};
pub use pool::{AdoptError, Pool};
pub use prefetch::{prefetch_line, prefetch_lines, prefetch_read, prefetch_slice};
pub use regions::{RegionInfo, Stale};
pub use rows::Rows;
