//! Counters, histograms, and the tap that shows packets to a trace.

pub(crate) mod counters;
pub(crate) mod histogram;
pub(crate) mod tap;
