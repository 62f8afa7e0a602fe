//! Processors, clock, kernel, and the limits of a process.

use std::thread;

use dunlin::TscClock;
use harness::machine::PROFILE;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::facts::{Fact, field, file};

/// Descriptors for a program with some hundred peers over shared memory; each peer takes three.
const DESCRIPTORS: u64 = 4096;

pub(super) fn look() -> Vec<Fact> {
    let cpuinfo = file("/proc/cpuinfo").unwrap_or_default();
    vec![
        Fact::good("dunlin", version()),
        Fact::good(
            "kernel",
            file("/proc/sys/kernel/osrelease").unwrap_or_default(),
        ),
        processor(&cpuinfo),
        cores(&cpuinfo),
        load(),
        clock(),
        governor(),
        descriptors(),
    ]
}

fn version() -> String {
    format!("{}, {PROFILE} build", env!("CARGO_PKG_VERSION"))
}

fn processor(cpuinfo: &str) -> Fact {
    let name = field(cpuinfo, "model name").unwrap_or(std::env::consts::ARCH);
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    let is_virtual = flags.split(' ').any(|flag| flag == "hypervisor");
    let place = if is_virtual {
        ", in a virtual machine"
    } else {
        ""
    };
    Fact::good("processor", format!("{name}{place}")).advise(
        !is_virtual,
        "neighbours on the host make latencies vary; measure on a machine of its own",
    )
}

fn cores(cpuinfo: &str) -> Fact {
    let here = thread::available_parallelism().map_or(1, usize::from);
    let all = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let value = match all > here {
        true => format!("{here} of {all} for this process"),
        false => here.to_string(),
    };
    Fact::good("cores", value).advise(
        here >= 2,
        "one core: use endpoint.idle = \"0\" or the default, never `spin`, which keeps the other \
         side of a session from running",
    )
}

fn load() -> Fact {
    let text = file("/proc/loadavg").unwrap_or_default();
    let recent = text.split(' ').next().unwrap_or_default();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let is_quiet = recent.parse::<f64>().is_ok_and(|load| load < cores as f64);
    Fact::good("load", format!("{recent} threads of the last minute")).advise(
        is_quiet,
        "other work takes the cores; measurements made now are slower than the machine",
    )
}

fn clock() -> Fact {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = file(path).unwrap_or_else(|| "unknown".to_owned());
    let uses = TscClock::new().uses_counter();
    let ours = if uses {
        "time stamp counter"
    } else {
        "the kernel's clock"
    };
    Fact::good("clock", format!("{ours}; kernel: {source}")).advise(
        uses,
        "the processor does not promise a constant counter; each reading of the time takes about \
         twice as long. In a virtual machine, pass the host's `invtsc` on",
    )
}

fn governor() -> Fact {
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    match file(path) {
        None => Fact::good("frequency", "this system cannot set it"),
        Some(governor) => {
            let is_fast = governor == "performance";
            Fact::good("frequency", format!("governor {governor}")).advise(
                is_fast,
                "the first requests after a pause are slower; `cpupower frequency-set -g \
                 performance` holds the frequency",
            )
        }
    }
}

fn descriptors() -> Fact {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let show = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let value = format!("{}, at most {}", show(current), show(maximum));
    Fact::good("open files", value).advise(
        current.is_none_or(|soft| soft >= DESCRIPTORS),
        format!(
            "each peer over shared memory takes three descriptors; run `ulimit -n {DESCRIPTORS}` \
             before a server with hundreds of peers"
        ),
    )
}
