//! Processor time of a process, this one or another.

use std::fs;

use anyhow::Context;

/// Nanoseconds for which all live threads of the process have run; threads that have ended are not
/// counted. The figure may lag by one tick of the scheduler, which is 4 ms or less.
///
/// # Errors
/// If there is no such process.
pub(crate) fn time_ns(process: u32) -> anyhow::Result<u64> {
    let threads = format!("/proc/{process}/task");
    let mut total = 0;
    for thread in fs::read_dir(&threads).with_context(|| format!("cannot read {threads}"))? {
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let first = text
            .split_whitespace()
            .next()
            .context("schedstat is empty")?;
        total += first.parse::<u64>()?;
    }
    Ok(total)
}
