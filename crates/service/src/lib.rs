//! Typed services on endpoints (design §11): a trait with the attribute [`macro@service`] becomes
//! client stubs and server glue, for the poll API and for futures.
//!
//! ```
//! use dunlin_service::{Fixed, service};
//! use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian};
//!
//! #[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
//! #[repr(C)]
//! pub struct Pair {
//!     key: little_endian::U64,
//!     value: little_endian::U64,
//! }
//!
//! #[service(codec = Fixed, crate = dunlin_service)]
//! pub trait Kv {
//!     /// Numbers are explicit: they are what clients and servers agree on.
//!     #[method(1)]
//!     fn put(pair: Pair) -> Result<(), u8>;
//!     /// One-way: it has no answer.
//!     #[notify(2)]
//!     fn touch(key: little_endian::U64);
//! }
//! ```
//! That makes `Kv` (implement it with `async fn` and give `KvServer` to `Local::serve_typed`),
//! `KvPoll` (implement it for the state of an endpoint, and call `register`), `KvClient` for
//! futures, `KvStub` for the poll API, and a type for each method (`KvPut`, `KvTouch`).
//!
//! | file | what it owns |
//! |---|---|
//! | `method.rs` | the types of a method: number, codec, messages |
//! | `codec.rs`, `codec/` | conversion between values and bytes |
//! | `outcome.rs` | the content of a response: a value, or the method's own error |
//! | `frame.rs` | the front of a request: deadline and metadata |
//! | `meta.rs`, `trace.rs` | metadata, and the trace among them |
//! | `context.rs` | facts about a request, for its handler |
//! | `error.rs` | how typed calls fail |
//! | `poll.rs` | stubs and glue on `Cx` |
//! | `link.rs` | the same for futures, on any executor |
//! | `check.rs` | a property that holds for any bytes |
//! | `carrier.rs` | where the calls of a client go: to a session, or over a channel |
//!
//! `docs/services.md` lists the changes that two versions of a service may have.
#![forbid(unsafe_code)]

mod carrier;
#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod codec;
mod context;
mod error;
mod frame;
mod link;
mod meta;
mod method;
mod outcome;
pub mod poll;
mod trace;

pub use carrier::Carrier;
#[cfg(feature = "fixed")]
pub use codec::fixed::{Fixed, Growing, Grown};
#[cfg(feature = "postcard")]
pub use codec::postcard::Postcard;
#[cfg(feature = "prost")]
pub use codec::prost::Prost;
pub use codec::{Codec, DecodeError, EncodeError};
pub use context::{Context, Peers};
#[cfg(feature = "service")]
pub use dunlin_service_macros::service;
pub use error::{CallFailure, Error, Failure, NotSent};
pub use frame::{Front, META};
pub use link::{AsyncService, IncomingRequest, Link, Refusal, Unary, answer, notify, open};
pub use meta::{MAX_ENTRIES, MAX_KEY, MAX_KEYS, Meta, MetaError, Metadata};
pub use method::{Method, ViewOf};
pub use outcome::{ErrorOf, Fallible, Outcome, Plain, SuccessOf, ValueOf};
pub use trace::{NotATrace, TraceParent};

/// Names for the crates below, for the code that the attribute makes.
pub mod core {
    pub use dunlin_core::{CallId, CallOptions, Cx, Done, Nanos, Register, Request, Session, Tag};
    pub use dunlin_msgbuf::MsgBuf;
    pub use dunlin_wire::{ErrorCode, ReqType};
}
