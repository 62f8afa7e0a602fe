//! Scenario files of the simulator (`scenarios/hello.toml` explains every key): [`Source`] reads a
//! file, changes keys in it and makes its runs, [`run()`] carries out a run, and [`text()`] prints
//! the results. [`Channels`] does the same for files of channels (`scenarios/channels.toml`).
//!
//! Used by `dunlin sim`, and by the simulated experiments of `dunlin bench`.
#![forbid(unsafe_code)]

mod channels;
mod file;
mod run;
mod source;
mod text;

pub use channels::{Channels, channels_object, channels_text};
pub use run::{Done, run};
pub use source::{Source, Variant};
pub use text::{losses, micros, text, title};
