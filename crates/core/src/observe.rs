//! Statistics (counters and histograms), and the tap that shows packets to a trace.

pub(crate) mod counters;
pub(crate) mod histogram;
pub(crate) mod stats;
pub(crate) mod tap;
