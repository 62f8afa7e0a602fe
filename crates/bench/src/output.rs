//! Charts and ratios of rows, and the figures of papers.

pub(crate) mod chart;
pub mod papers;
pub(crate) mod ratios;
#[cfg(test)]
pub(crate) mod sample;
