//! The protocol: bytes of requests and answers. All numbers are little endian, and every request
//! except the one for the map begins with the version of the protocol.
//!
//! There are four types of requests: [`MAP`] asks an endpoint for the map of partitions; [`KEYED`]
//! is one operation on one key; [`MULTI`] gets many keys of one partition; [`WHOLE`] concerns a
//! whole partition. All operations on one key share a type, so that a burst of them is one batch.
//!
//! Invariant: if bytes can be decoded as a request, encoding the request gives the same bytes. So
//! two programs that agree on the bytes agree on the operation. `docs/kv.md` has the tables for
//! other languages. Called by `service`, `client` and `check`.

mod answer;
mod cursor;
mod figures;
mod format;
mod hot;
mod map;
mod multi;
mod request;
mod whole;

pub use answer::{Answer, FoundItem, Status};
pub(crate) use answer::{Head, short_len, write_short};
pub(crate) use figures::PUBLISHED;
pub use figures::{COUNTERS, Figures, GAUGES};
pub use format::{KEYED, MAP, MAX_KEYS, MAX_PARTITIONS, MULTI, Malformed, VERSION, WHOLE};
pub use hot::HotKeys;
pub(crate) use map::share;
pub use map::{KeyPlace, Map, MapError};
pub use multi::{Keys, Records};
pub(crate) use multi::{MOST_ANSWER, Record};
pub(crate) use request::set_tag;
pub use request::{Request, Store};
pub(crate) use whole::SCAN_ROOM;
pub use whole::{Scanned, Whole};

#[cfg(test)]
mod tests;
