//! Memory, huge pages, and the limits for sharing and locking memory.

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use super::facts::{Fact, chosen, field, file, number, size};

/// Message buffers lie in pages of this size, if there are any.
const HUGE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

pub(super) fn look() -> Vec<Fact> {
    let meminfo = file("/proc/meminfo").unwrap_or_default();
    vec![memory(&meminfo), huge(), transparent(), shared(), locked()]
}

fn memory(meminfo: &str) -> Fact {
    let kib = |name: &str| {
        let value = field(meminfo, name)?.split(' ').next()?;
        value.parse::<u64>().ok()
    };
    let [total, free] = ["MemTotal", "MemAvailable"].map(|name| kib(name).unwrap_or(0) << 10);
    Fact::good(
        "memory",
        format!("{}, {} available", size(total), size(free)),
    )
    .advise(
        free >= 1 << 30,
        "an endpoint takes up to `endpoint.pool_bytes` (1 GiB) when it needs it; set it lower",
    )
}

fn huge() -> Fact {
    let [all, free] =
        ["nr_hugepages", "free_hugepages"].map(|name| number(format!("{HUGE}/{name}")));
    let (all, free) = (all.unwrap_or(0), free.unwrap_or(0));
    let value = match all {
        0 => "none set aside; buffers of less than 2 MiB use ordinary pages".to_owned(),
        _ => format!("{free} of {all} of 2 MiB are free"),
    };
    Fact::good("huge pages", value).advise(
        free > 0,
        "many sessions gain some percent: as root, `sysctl -w vm.nr_hugepages=512` sets 1 GiB \
         aside",
    )
}

fn transparent() -> Fact {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = file(path).unwrap_or_default();
    let value = chosen(&text).unwrap_or("not in this kernel").to_owned();
    Fact::good("transparent huge pages", value)
}

fn shared() -> Fact {
    match statvfs("/dev/shm") {
        Err(why) => Fact::good("/dev/shm", format!("none ({why}); rings do not need it")),
        Ok(answer) => {
            let bytes = |blocks: u64| blocks.saturating_mul(answer.f_frsize);
            let (total, free) = (bytes(answer.f_blocks), bytes(answer.f_bavail));
            let value = format!("{} free of {}", size(free), size(total));
            Fact::good("/dev/shm", value).advise(
                free >= 16 << 20,
                "rings and message buffers are memory files without a name and do not count \
                 here; other shared files do. `mount -o remount,size=1G /dev/shm`",
            )
        }
    }
}

fn locked() -> Fact {
    match getrlimit(Resource::Memlock).current {
        None => Fact::good("locked memory", "unlimited"),
        Some(soft) => {
            let value = format!("{}; shared memory and UDP lock none", size(soft));
            Fact::good("locked memory", value)
        }
    }
}
