//! Which machine the figures are from.

use std::thread;

/// The processor, how many of it, and the kernel; parts that the system does not tell are left
/// out.
pub(super) fn describe() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let build = if cfg!(debug_assertions) {
        "debug build"
    } else {
        "release build"
    };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{processor}, {cores} cores, Linux {}; dunlin {version}, {build}",
        release.trim()
    )
}

/// How many threads wanted to run during the last minute, on average.
pub(super) fn load() -> String {
    let loads = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or("unknown").to_owned()
}

/// The value behind the first `name :` of a file like `/proc/cpuinfo`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}
