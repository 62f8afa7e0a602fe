//! The writing side. A nexus makes a [`Page`]; each of its endpoints has a [`Block`] in it, and a
//! [`Recorder`] while a reader traces the endpoint.

mod page;
mod recorder;

pub use crate::layout::ROWS;
pub use crate::values::{Gauges, Row};
pub use page::{Block, Head, Names, Page, Writing, unix_now};
pub use recorder::{Change, Passed, Recorder, Switch};
