//! Charts, ratios and aims of rows, and the figures that papers have published.

pub mod aims;
pub(crate) mod chart;
pub mod papers;
pub(crate) mod ratios;
#[cfg(test)]
pub(crate) mod sample;
