//! System calls a second of processes under load, as `perf` counts them.

use std::process::{Command, Stdio};
use std::time::Duration;

/// Whether `perf` can count.
pub(crate) fn are_counted() -> bool {
    stat(&["true"]).is_some()
}

/// Counts the system calls of all threads of these processes for a time. Returns the number for a
/// second; `None` if `perf` did not count.
pub(crate) fn per_second(processes: [u32; 2], span: Duration) -> Option<f64> {
    let [first, second] = processes;
    let both = format!("{first},{second}");
    let span = span.as_secs_f64();
    Some(stat(&["-p", &both, "sleep", &span.to_string()])? / span)
}

fn stat(of: &[&str]) -> Option<f64> {
    let counted = Command::new("perf")
        .args(["stat", "-x,", "-e", "raw_syscalls:sys_enter"])
        .args(of)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    // `perf` prints its counts to the standard error.
    count(&String::from_utf8(counted.stderr).ok()?)
}

/// The count in the output of `perf`.
fn count(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("sys_enter"))?;
    line.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests;
