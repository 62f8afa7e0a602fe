//! The processor time of a step: of its shell and of all descendants that have been waited for.
//! Called by `step`. The kernel counts it in `/proc/PID/stat` (proc(5)), where it stays until the
//! parent has taken the status of the process.

use std::time::Duration;

use anyhow::Context;

/// Unit of the kernel's figures, in every architecture that Dunlin supports: 1/100 s.
const TICK: Duration = Duration::from_millis(10);

/// The processor time of a process so far.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Used {
    pub(super) time: Duration,
    /// Whether the process has ended, and its parent has not yet taken its status.
    pub(super) has_ended: bool,
}

/// Reads the processor time of a child.
pub(super) fn of(pid: u32) -> anyhow::Result<Used> {
    let path = format!("/proc/{pid}/stat");
    let line = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse(&line).with_context(|| format!("cannot understand {path}: {line}"))
}

/// Reads the state and the times from the kernel's line. The name of the program stands before them
/// in parentheses, and may itself contain spaces and parentheses.
fn parse(line: &str) -> Option<Used> {
    let (_, fields) = line.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // The state is field 3 of proc(5), the four times are fields 14 to 17.
    let times = fields.get(11..15)?.iter().map(|it| it.parse::<u32>());
    let ticks = times.sum::<Result<u32, _>>().ok()?;
    Some(Used {
        time: TICK * ticks,
        has_ended: *fields.first()? == "Z",
    })
}

#[cfg(test)]
mod tests;
