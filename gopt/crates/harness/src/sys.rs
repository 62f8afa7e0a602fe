//! System calls that the standard library lacks: for processors of threads, signals, and the
//! resources of this process. Every unsafe block of this crate is in this folder, around one system
//! call each.

mod affinity;
mod result;
mod signals;
mod usage;

pub use affinity::{allowed_cpus, pin_to, set_priority};
pub(crate) use signals::handle_once;
pub use signals::{die_with_parent, end_with_this, has_ended, kill_group};
pub use usage::{
    monotonic_time, processor_time, resident_and_huge_bytes, resident_bytes, set_exact_timers,
    thread_time,
};
