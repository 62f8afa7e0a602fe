//! The memory of a server: whether the process may have it, and the share of each thread.

use std::path::Path;
use std::thread;

use dunlin::kv::store::{HUGE_PAGE, MIN_MEMORY};

use super::Plan;
use crate::misuse::Misuse;

/// A share is rounded down to whole huge pages if it loses at most one part in this number.
const LOSS: usize = 16;

/// The memory of each thread: whole huge pages, because the kernel gives reserved huge pages only
/// to a mapping that consists of whole ones. A share that would lose much by that stays as it is.
pub(super) fn share(memory: usize, threads: u16) -> usize {
    let share = memory / usize::from(threads);
    let rest = share % HUGE_PAGE;
    match rest <= share / LOSS {
        true => share - rest,
        false => share,
    }
}

/// The memory of all threads together: the sum of their shares, which rounding may make less than
/// `memory`.
pub(super) fn sum(memory: usize, threads: u16) -> usize {
    share(memory, threads) * usize::from(threads)
}

/// Says which pages the memory consists of, if `huge` of the threads have huge pages.
pub(super) fn named(huge: u16, threads: u16) -> String {
    match huge {
        0 => "ordinary pages".to_owned(),
        all if all == threads => "reserved huge pages".to_owned(),
        some => format!("reserved huge pages for {some} of {threads} threads"),
    }
}

/// Refuses a size of memory that no table can have, or that this process may not have.
pub(super) fn check(args: &Plan) -> anyhow::Result<()> {
    let least = MIN_MEMORY * usize::from(args.threads);
    if args.memory < least {
        return Err(Misuse(format!(
            "--memory or kv.memory: {} bytes are too few; {} threads need {least} at least",
            args.memory, args.threads
        ))
        .into());
    }
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).as_deref().and_then(total);
    let limits = [
        (machine, "of this machine"),
        (
            group_limit(read),
            "that the control group of this process may have",
        ),
    ];
    for (limit, whose) in limits {
        if let Some(limit) = limit.filter(|limit| args.memory > *limit) {
            return Err(Misuse(format!(
                "--memory or kv.memory: {} bytes are more than the {limit} {whose}",
                args.memory
            ))
            .into());
        }
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    if usize::from(args.threads) > processors {
        eprintln!(
            "dunlin: {} threads share {processors} processors; fewer are usually faster",
            args.threads
        );
    }
    Ok(())
}

/// The machine's memory in bytes, from the text of `/proc/meminfo`.
fn total(text: &str) -> Option<usize> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes = line
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<usize>()
        .ok()?;
    kibibytes.checked_mul(1024)
}

/// The lowest limit of memory, in bytes, of the control groups to which this process belongs;
/// `None` if they have none. `read` returns the text of a file. Of both versions of control groups,
/// only the first has groups that limit nothing but memory.
fn group_limit(read: impl Fn(&Path) -> Option<String>) -> Option<usize> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kinds, group) = (fields.next().unwrap_or(""), fields.next().unwrap_or("/"));
        let (root, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let is_of_memory = kinds.is_empty() || kinds.split(',').any(|kind| kind == "memory");
        let groups = Path::new(group).ancestors().filter(move |_| is_of_memory);
        let limit = |group: &Path| {
            let inside = group.strip_prefix("/").unwrap_or(group);
            // Without a limit, the text is `max`.
            read(&Path::new(root).join(inside).join(file))?
                .trim()
                .parse()
                .ok()
        };
        groups.filter_map(limit).collect::<Vec<usize>>()
    });
    limits.min()
}

#[cfg(test)]
mod tests;
