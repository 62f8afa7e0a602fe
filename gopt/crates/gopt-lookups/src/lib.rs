//! Look-ups for measuring G-Opt, in three forms that give the same values:
//!
//! - plain: one item after the other;
//! - gopt: the code for one item, marked, run interleaved by [`gopt::Batch`];
//! - hand: group prefetching, as an expert would write it (G-Opt §3.1.1).
//!
//! A table implements [`Lookup`]; [`forms`] runs it, with or without other [`work`] around each
//! look-up, and [`c`] runs the same look-ups written in C. [`aho_corasick`] is a traversal, not a
//! look-up, and has its own two forms (G-Opt §5). [`lines`] measures the rate of the memory itself,
//! and [`touched`] counts the lines that a look-up reads. Called by `gopt bench`.

pub mod aho_corasick;
pub mod btree;
pub mod c;
mod compare;
pub mod cuckoo;
pub mod forms;
pub mod huge;
pub mod ipv4;
pub mod ipv6;
pub mod lines;
pub mod mica;
pub mod pointer_chasing;
pub mod random;
pub mod touched;
pub mod trie;
pub mod work;

pub use forms::Lookup;
