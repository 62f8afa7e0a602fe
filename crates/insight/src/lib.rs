//! The memory file in which a process publishes the state of its endpoints: counters, histograms,
//! sessions and, if a reader asks for them, packets. Other programs of the same user read it
//! without asking the process; programs on other hosts read it through the nexus (rule C10).
//!
//! | file | what it owns |
//! |---|---|
//! | `layout.rs`, `values.rs`, `place.rs` | the format: the place and the meaning of each value |
//! | `ffi.rs` | memory that processes share |
//! | `writer/page.rs` | the file of a nexus, with one block for each endpoint |
//! | `writer/recorder.rs` | packets, into a ring in the same file |
//! | `reader/snapshot.rs` | the values of one moment, from untrusted bytes |
//! | `reader/trace.rs` | the packets |
//! | `reader/find.rs`, `reader/remote.rs` | the files of this host, and those of others |
//!
//! A writer supplies the names of its values, and the file contains them as text. Therefore, this
//! crate does not know the counters of an endpoint, and a reader needs no nexus.
//! `docs/decisions/insight.md` explains why it is a memory file.
//!
//! ```
//! use dunlin_insight::Snapshot;
//! use dunlin_insight::writer::{Gauges, Head, Names, Page};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let names = Names { counters: vec!["answers"], ..Names::default() };
//! let page = std::sync::Arc::new(Page::new("127.0.0.1:31850".parse()?, &names)?);
//! let mut block = page.block().expect("it is the first");
//! let mut out = block.write(&Head { index: 0, transport: "shm", clock_ns: 1, rows: 0 });
//! out.values([42]);
//! out.gauges(&Gauges::default());
//! out.finish();
//!
//! let shown = Snapshot::read(&mut page.file())?;
//! assert_eq!(shown.endpoints[0].counters.get("answers"), 42);
//! # Ok(())
//! # }
//! ```

// Except in `ffi.rs`.
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "the standard library has no memory files")]
mod ffi;
mod layout;
mod place;
mod reader;
mod values;
pub mod writer;

pub use place::Whereabouts;
pub use reader::{
    Endpoint, FindError, Found, Group, Histogram, Packet, ReadError, Remote, SessionRow, Snapshot,
    Source, Trace, TraceError, Values, all, of_process,
};
