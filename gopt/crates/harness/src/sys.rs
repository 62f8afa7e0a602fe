//! System calls that the standard library lacks: for processors of threads, for signals, and for
//! the resources of this process. All unsafe blocks of this crate are in this folder; each makes a
//! system call, prepares its arguments or reads its result.

mod affinity;
mod result;
mod signals;
mod usage;

pub use affinity::{allowed_cpus, pin_to, set_priority};
pub(crate) use signals::handle_once;
pub use signals::{die_with_parent, end_with_this, has_ended, kill_group};
pub use usage::{
    monotonic_time, processor_time, processor_time_of, resident_and_huge_bytes,
    resident_data_bytes, set_exact_timers, thread_time,
};
