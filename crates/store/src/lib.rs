//! The table of the key-value service: keys and values in one region of memory, as in MICA (HERD
//! §2.1, §4.1), without networking and without a clock.
//!
//! A [`Table`] has one of two [`Mode`]s. A cache never runs out of memory: it evicts its oldest
//! items, except those that clients have read, which become its youngest. A store never loses an
//! item: a write that finds no memory fails. Both modes have the same operations, and a batch hides
//! the latency of memory ([`Table::get_batch`]).
//!
//! ```
//! use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table, Write};
//!
//! let config = Config { mode: Mode::Cache, seed: Seed::new([17, 4]), first_version: 1 };
//! let mut table = Table::new(Region::new(1 << 20)?, config)?;
//! let now = Seconds(1000);
//! let key = table.key(b"name").expect("it has 1 to 250 bytes");
//! table.write(&key, &Write::set(b"dunlin"), now).expect("it is short");
//! let item = table.get(&key, now).expect("it was written");
//! assert_eq!(item.value().to_vec(), b"dunlin");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A table belongs to one thread, which passes the time with each call.

#![forbid(unsafe_code)]

#[cfg(test)]
mod check;
mod classes;
mod config;
mod copy;
mod departed;
mod due;
mod hash;
mod index;
mod item;
mod log;
mod memory;
mod mutant;
mod table;

pub use config::{
    ACCESS_SECONDS, BATCH, Config, MAX_KEY, MAX_VALUE, MIN_MEMORY, MOST_SPLITS, MOST_WRITINGS,
    Mode, SLICE,
};
pub use copy::copy_short;
pub use hash::{ROUTE_VERSION, Seed, route};
pub use item::{Seconds, Stamp, Value, Version};
pub use memory::{HUGE_PAGE, Pages, Region};
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use table::{
    CounterError, Cursor, DeleteError, Delta, Departure, HOT_KEYS, Item, Key, Reason, SizeError,
    Stats, Swept, Table, Verb, Write, WriteError, Writing, ones,
};
