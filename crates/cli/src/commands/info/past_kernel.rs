//! Whether the transport `xdp` can be used here: the kernel, the privileges of this process, and
//! each Ethernet interface.

use std::io;
use std::path::Path;

use dunlin::transport::XdpMode;
use dunlin::transport::xdp_setup::{self, Owner, State as Link};

use super::facts::{Fact, field, file, number, size};

/// The capabilities that `xdp` needs, and their bits in `/proc/self/status`.
const NEEDED: [(&str, u32); 3] = [("cap_net_admin", 12), ("cap_net_raw", 13), ("cap_bpf", 39)];

/// The bit of the capability to pin any amount of memory.
const IPC_LOCK: u32 = 14;

/// The first version of Linux whose sockets take frames of several pieces.
const OLDEST: (u32, u32) = (6, 6);

/// The most queues that `xdp.queues` allows.
const MOST_QUEUES: usize = 64;

/// The kind of an Ethernet interface in `/sys/class/net/NAME/type`.
const ETHERNET: u64 = 1;

pub(super) fn look() -> Vec<Fact> {
    let mut facts = vec![kernel(), sharing(), privileges(), pinned(), untested()];
    facts.extend(interfaces());
    facts
}

fn kernel() -> Fact {
    let release = file("/proc/sys/kernel/osrelease").unwrap_or_default();
    kernel_of(&release, xdp_setup::check_kernel())
}

/// Whether a kernel of this release is new enough, and has AF_XDP sockets; `sockets`: the result of
/// an attempt to open one.
fn kernel_of(release: &str, sockets: io::Result<()>) -> Fact {
    let is_new = version(release).is_some_and(|version| version >= OLDEST);
    let fact = Fact::good("xdp: kernel", format!("Linux {release}"));
    match sockets {
        Ok(()) => fact.advise(
            is_new,
            format!("xdp needs Linux {}.{} or newer", OLDEST.0, OLDEST.1),
        ),
        Err(error) => fact.missing(format!(
            "{error}; `grep XDP_SOCKETS /boot/config-$(uname -r)` shows the option"
        )),
    }
}

/// How many endpoints may share a queue.
fn sharing() -> Fact {
    let release = file("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_safe = locks_fill_ring(&release);
    let value = match is_safe {
        true => "several",
        false => "one",
    };
    Fact::good("xdp: endpoints of a queue", value.to_owned()).advise(
        is_safe,
        "before Linux 6.6.123, 6.12.28, 6.14.6 or 6.15, several may mix up their frames in generic \
         mode (CVE-2025-37920); set xdp.endpoints = 1, unless the distribution has the fix",
    )
}

/// Whether this release of the kernel, or an earlier one of its series, has the fix of
/// CVE-2025-37920.
fn locks_fill_ring(release: &str) -> bool {
    let mended = match version(release) {
        Some((6, 6)) => 123,
        Some((6, 12)) => 28,
        Some((6, 14)) => 6,
        Some(version) => return version >= (6, 15),
        None => return false,
    };
    let patch = numbers(release).nth(2);
    patch.is_some_and(|patch| patch >= mended)
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = numbers(release);
    Some((numbers.next()?, numbers.next()?))
}

/// The numbers at the start of a release.
fn numbers(release: &str) -> impl Iterator<Item = u32> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.map_while(|part| part.parse().ok())
}

/// The effective capabilities of this process, as bits.
fn capabilities() -> u64 {
    let status = file("/proc/self/status").unwrap_or_default();
    let bits = field(&status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
    bits.unwrap_or(0)
}

fn privileges() -> Fact {
    let missing = missing(capabilities());
    let value = match missing.is_empty() {
        true => "all".to_owned(),
        false => format!("{} missing", missing.join(", ")),
    };
    Fact::good("xdp: privileges", value).advise(
        missing.is_empty(),
        "as root, `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep PROGRAM`, or `dunlin \
         xdp-setup` and the option xdp.setup",
    )
}

/// The needed capabilities that `capabilities` lacks.
fn missing(capabilities: u64) -> Vec<&'static str> {
    let lacks = |(_, bit): &&(&str, u32)| capabilities >> bit & 1 == 0;
    NEEDED.iter().filter(lacks).map(|(name, _)| *name).collect()
}

fn pinned() -> Fact {
    let limits = file("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"));
    let limit = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let is_free = capabilities() >> IPC_LOCK & 1 == 1;
    let value = match limit {
        Some(limit) if !is_free => format!("up to {}", size(limit)),
        _ => "without limit".to_owned(),
    };
    let wanted = dunlin::transport::XdpOptions::default().umem_bytes;
    Fact::good("xdp: pinned memory", value).advise(
        is_free || limit.is_none_or(|limit| limit >= wanted),
        format!(
            "xdp.umem is {}; less room drops packets earlier: `ulimit -l {}`, or cap_ipc_lock",
            size(wanted),
            wanted >> 10
        ),
    )
}

/// Parts that were never tested, because we had no device for them.
fn untested() -> Fact {
    let what = "drivers that reset for xdp.mode = native, xdp.zero_copy, devices that take VLAN \
                tags off, interfaces of VLANs, queues by rule (tools/xdp-on-a-nic.sh tries them)";
    Fact::good("xdp: untested", what.to_owned())
}

/// The Ethernet interfaces of this network namespace.
fn interfaces() -> Vec<Fact> {
    let Ok(all) = std::fs::read_dir("/sys/class/net") else {
        return Vec::new();
    };
    let mut names: Vec<_> = all
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| number(path.join("type")) == Some(ETHERNET))
        .collect();
    names.sort();
    names.iter().map(|path| interface(path)).collect()
}

fn interface(path: &Path) -> Fact {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let queues = std::fs::read_dir(path.join("queues")).into_iter().flatten();
    let queues = queues
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-"))
        .count();
    interface_of(&Interface {
        name: name.to_string(),
        carrier: file(path.join("operstate")).unwrap_or_default(),
        queues,
        rules: rules(&name),
        mtu: number(path.join("mtu")).unwrap_or(0),
        link: xdp_setup::state_of(&name).ok(),
    })
}

/// An Ethernet interface.
struct Interface {
    name: String,
    /// Its state as the kernel names it: `up`, `down`, `lowerlayerdown` and others.
    carrier: String,
    queues: usize,
    rules: String,
    mtu: u64,
    link: Option<Link>,
}

fn interface_of(it: &Interface) -> Fact {
    let Interface {
        name,
        carrier,
        queues,
        rules,
        mtu,
        link,
    } = it;
    let program = match link.and_then(|link| link.program) {
        None => "",
        Some(Owner::OfUser) => "the XDP program of a process of this user, ",
        Some(Owner::Other(_)) => "another XDP program, ",
    };
    let native = native(*link);
    let value =
        format!("{name}: {carrier}, {queues} queues, {rules}, {native}, {program}MTU {mtu}");
    let faults = faults(it);
    Fact::good("xdp: interface", value).advise(faults.is_empty(), faults.join("; "))
}

/// Advice about an interface with a program in this mode that no process of this user has offered.
fn other_program(name: &str, mode: Option<XdpMode>) -> String {
    let off = match mode {
        Some(XdpMode::Generic) => "xdpgeneric",
        Some(XdpMode::Native) => "xdpdrv",
        // In the card, or several programs.
        None => "xdpgeneric|xdpdrv|xdpoffload",
    };
    format!(
        "it has another program, perhaps that of `dunlin xdp-setup` (then set xdp.setup) or of \
         another user: `bpftool net list dev {name}` shows it; to remove it, end its process, or \
         if it has none, as root, `ip link set dev {name} {off} off`"
    )
}

/// The modes that the driver has apart from the generic one, which every interface has.
fn native(link: Option<Link>) -> &'static str {
    let features = link.and_then(|link| link.features);
    match features.map(|features| (features.native, features.zero_copy)) {
        None => "native mode unknown",
        Some((false, _)) => "no native mode",
        Some((true, false)) => "native mode",
        Some((true, true)) => "native mode and zero-copy",
    }
}

/// The reasons why endpoints cannot use the interface, or not well, with the commands that help.
fn faults(it: &Interface) -> Vec<String> {
    let name = &it.name;
    let mut faults = Vec::new();
    if let Some(link) = it.link {
        if let Some(Owner::Other(mode)) = link.program {
            faults.push(other_program(name, mode));
        }
        if !link.is_up {
            faults.push(format!("it is down: as root, `ip link set dev {name} up`"));
        } else if ["down", "lowerlayerdown"].contains(&&*it.carrier) {
            faults.push(format!(
                "it has no carrier: look at its cable and its other end (`ip link show dev {name}`)"
            ));
        }
    }
    if it.queues > 1 {
        let most = it.queues.min(MOST_QUEUES);
        faults.push(format!(
            "only packets that the interface puts into the endpoint's queues bypass the kernel: \
             `--set xdp.queues={most}` gives it as many as it may have; or as root, `ethtool -L \
             {name} combined 1` leaves one"
        ));
    }
    faults
}

/// Whether the device has rules that put an endpoint's packets into its queue.
fn rules(name: &str) -> String {
    match xdp_setup::rules_of(name) {
        Ok(count) => format!("{count} rules for queues (`ethtool -u {name}`)"),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            "no rules for queues: the device chooses the queue of a packet".to_owned()
        }
        Err(error) => format!("rules unknown ({error})"),
    }
}

#[cfg(test)]
mod tests;
