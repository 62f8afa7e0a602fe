//! Every option that an operator tunes, from a file, from environment variables, and from the
//! program, in rising priority (`docs/configuration.md`).
//!
//! ```
//! use dunlin_nexus::Rpc;
//! use dunlin_settings::Settings;
//! use dunlin_transport::auto::Auto;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings::load()?                      // DUNLIN_CONFIG, then DUNLIN_*
//!     .with("nexus.listen", "127.0.0.1:0")?;            // then the program
//! let nexus = settings.nexus().workers(4).bind(settings.listen())?;
//! let rpc: Rpc<Auto, ()> = settings.endpoint(&nexus).build(())?;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is loaded unless the program asks for it (`docs/decisions/configuration.md`). What is
//! wrong is refused with its place, what was expected there, and the nearest name. An option that
//! is not set is not touched: a builder keeps its own default.
//!
//! `settings.rs` is where they come together, `table.rs` the registry, `setting.rs` what a row
//! says, `text.rs` how values are written, `file.rs` where keys stand in a file, and `apply.rs` how
//! values reach the builders.

#![forbid(unsafe_code)]

mod apply;
mod error;
mod field;
mod file;
mod nearest;
mod options;
mod setting;
mod settings;
mod table;
mod text;
mod value;

pub use apply::Configurable;
pub use error::{Problem, SettingsError, Source};
pub use setting::Setting;
pub use settings::{Entry, Settings};
