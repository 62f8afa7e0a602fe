//! The processors and the priority of threads: finds the processors that this process may use, pins
//! a thread to one of them, and makes a thread run before others.

use std::io;
use std::mem;

use super::result::checked;

/// The processors that the calling thread may run on, in order.
///
/// # Errors
/// The system does not report it.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let mut set = empty_set();
    // SAFETY: `set` is valid for writes of the size that is given, and 0 means this thread.
    checked(unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) })?;
    let bits = 8 * mem::size_of_val(&set);
    // SAFETY: every index is below the number of bits in the set.
    Ok((0..bits)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

/// Makes the calling thread run on `cpu` alone from now on.
///
/// # Errors
/// There is no such processor, or this process may not use it.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    let mut set = empty_set();
    if cpu >= 8 * mem::size_of_val(&set) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the index is below the number of bits in the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid for reads of the size that is given, and 0 means this thread.
    checked(unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) })?;
    Ok(())
}

/// Makes the calling thread, and those that it starts, run before all ordinary threads from now on,
/// and before threads with a lower `priority` (from 1). With 0 they are ordinary threads.
///
/// # Errors
/// The system allows this only to root.
pub fn set_priority(priority: u8) -> io::Result<()> {
    let policy = match priority {
        0 => libc::SCHED_OTHER,
        _ => libc::SCHED_FIFO,
    };
    let param = libc::sched_param {
        sched_priority: priority.into(),
    };
    // SAFETY: `param` is valid for reads, and 0 means this thread.
    checked(unsafe { libc::sched_setscheduler(0, policy, &raw const param) })?;
    Ok(())
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: a processor set is an array of integers; all zero is the empty set.
    unsafe { mem::zeroed() }
}
