//! The experiments of `dunlin bench`: each is a list of cases, measured in rounds, with baselines
//! that do not use the library. The important figures are medians of several rounds. They are given
//! as ratios to the speed of this machine without the library, measured in the same rounds.
//!
//! [`experiments`] contains the subjects, [`baselines`] the measurements that they are compared
//! with, and [`harness`] everything that both need; [`output`] draws and compares rows. The
//! commands are in `cli`.
#![cfg_attr(
    not(feature = "full"),
    expect(dead_code, reason = "the harness serves all experiments")
)]

pub mod baselines;
pub mod experiments;
pub mod harness;
pub mod output;
