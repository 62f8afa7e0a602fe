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
//! Nothing is loaded unless the program asks for it (`docs/decisions/configuration.md`). A wrong
//! value is refused with its place, the values expected there, and the nearest name. An option that
//! is not set changes nothing: a builder keeps its own default.
//!
//! `settings.rs` has the values that are set, `table.rs` all options, `setting.rs` the row of an
//! option, and `text.rs` the text form of values. `file.rs` finds the keys in a file,
//! `kubernetes.rs` knows the variables that Kubernetes sets, and `apply.rs` passes values to the
//! builders.

#![forbid(unsafe_code)]

mod apply;
mod error;
mod field;
mod file;
mod kubernetes;
mod nearest;
mod options;
mod remote;
mod setting;
mod settings;
mod table;
mod text;
mod value;

pub use apply::Configurable;
pub use error::{Problem, SettingsError, Source};
pub use options::{KvMode, KvOptions, ReplicaOptions, SequencerOptions};
pub use setting::Setting;
pub use settings::{Entry, Settings};
