//! The resources of this process: processor time and memory.

use std::io;
use std::mem;
use std::time::Duration;

use super::result::checked;

/// Processor time of all threads of this process.
///
/// # Errors
/// The system does not report it.
pub fn processor_time() -> io::Result<Duration> {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of all threads of another process, which belongs to the same user.
///
/// # Errors
/// There is no such process, or the system does not report it.
pub fn processor_time_of(process: u32) -> io::Result<Duration> {
    let process = libc::pid_t::try_from(process).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut clock = 0;
    // SAFETY: `clock` is valid for writes.
    match unsafe { libc::clock_getcpuclockid(process, &raw mut clock) } {
        0 => read_clock(clock),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Processor time of the calling thread.
///
/// # Errors
/// The system does not report it.
pub fn thread_time() -> io::Result<Duration> {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time since some moment before this process began.
///
/// # Errors
/// The system does not report it.
pub fn monotonic_time() -> io::Result<Duration> {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Bytes of this process's resident memory without files: its own data, and what it shares with
/// other processes. The code of the program is a file, of which the kernel maps more whenever a
/// function runs for the first time. Huge pages of hugetlbfs do not count.
///
/// # Errors
/// The system does not report it.
pub fn resident_data_bytes() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    match (kib(&status, "RssAnon:"), kib(&status, "RssShmem:")) {
        (Some(own), Some(shared)) => Ok((own + shared) << 10),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Bytes of this process's resident memory, and how many of them are anonymous memory on huge
/// pages.
///
/// # Errors
/// The system does not report it.
pub fn resident_and_huge_bytes() -> io::Result<(u64, u64)> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    match (kib(&rollup, "Rss:"), kib(&rollup, "AnonHugePages:")) {
        (Some(resident), Some(huge)) => Ok((resident << 10, huge << 10)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The KiB in the line that begins with `name`.
fn kib(report: &str, name: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Makes timers of this thread, and of threads that it starts later, fire as soon as they are due.
/// By default, the kernel may delay a timer by up to 50 µs to fire it together with others.
///
/// # Errors
/// The system refuses.
pub fn set_exact_timers() -> io::Result<()> {
    // SAFETY: this option takes one integer argument and touches no memory of ours.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) })?;
    Ok(())
}

fn read_clock(clock: libc::clockid_t) -> io::Result<Duration> {
    // SAFETY: all zero is a valid time.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: `time` is valid for writes.
    checked(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    match (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) {
        (Ok(seconds), Ok(nanoseconds)) => Ok(Duration::new(seconds, nanoseconds)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests;
