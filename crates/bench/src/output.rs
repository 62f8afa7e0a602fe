//! Charts and ratios of rows, and the figures that papers have published.

pub(crate) mod chart;
pub mod papers;
pub(crate) mod ratios;
#[cfg(test)]
pub(crate) mod sample;
