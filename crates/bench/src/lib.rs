//! The experiments of `dunlin bench`: each is a list of cases that are measured in rounds, with
//! baselines that use nothing of the library. Figures that count are medians of several rounds, as
//! ratios to what this machine can do without the library, measured at the same time.
//!
//! [`experiments`] has what is measured, [`baselines`] what it is compared with, [`harness`] what
//! both need, and [`output`] draws and compares rows. The commands are in `cli`.
#![cfg_attr(
    not(feature = "full"),
    expect(dead_code, reason = "the harness serves all experiments")
)]

pub mod baselines;
pub mod experiments;
pub mod harness;
pub mod output;
