//! The parts that every experiment needs. [`process`] starts the processes of an experiment and
//! gives each its [`seat`]; [`callgrind`] counts their instructions; [`progress`] shows how far a
//! run is, and [`signal`] ends it. [`row`] is the form of results. [`output`] writes them for
//! machines, for people as a [`table`], and as charts ([`draw`]).
//!
//! `gopt bench`, `dunlin bench` and `dunlin report` use this crate. A program first sets its name
//! with [`machine::introduce`].

pub mod callgrind;
pub mod draw;
pub mod figure;
pub mod machine;
pub mod output;
pub mod process;
pub mod progress;
pub mod row;
pub mod seat;
pub mod signal;
pub mod state;
pub mod sys;
pub mod table;
