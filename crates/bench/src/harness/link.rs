//! A link between two processes, for transports that need an interface or a device.
//!
//! A link of interfaces lies between two network namespaces. Its ends are named by the command, or
//! are a pair of virtual interfaces that this process makes as root. Devices of DPDK make a new
//! link of their own for each measurement (`device`).
//!
//! Invariant: a link that this process made ends with it, and its namespaces have no name. A child
//! enters its end before it opens anything. Called by experiments in the parent, and by the roles
//! of its children.

mod device;
mod namespace;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

pub(crate) use device::{Device, NETWORK};

/// The name of both interfaces of a link that this process made, and the link's MTU.
const INTERFACE: &str = "link0";
const MTU: u32 = 9000;

/// Bytes of the longest name of an interface, with its final zero.
const NAME: usize = 16;

/// Where the kernel runs the program that steers packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// After the driver.
    Generic,
    /// In the driver.
    Native,
}

impl Mode {
    /// Its name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Native => "native",
        }
    }
}

/// The kind of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Interfaces, and frames that AF_XDP takes in this mode.
    Xdp(Mode),
    /// Interfaces, and only the kernel's stack.
    Kernel,
    /// Devices of DPDK.
    Dpdk,
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum End {
    /// An interface in a namespace.
    Interface(LinkEnd),
    /// A device of DPDK.
    Device(Device),
}

/// An interface at one end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LinkEnd {
    /// The namespace, as a descriptor in the process that holds the link.
    process: u32,
    descriptor: i32,
    interface: [u8; NAME],
    ip: IpAddr,
    /// `None` if the process attaches no program to the interface.
    mode: Option<Mode>,
}

/// An end as the command names it: `NAMESPACE/INTERFACE/ADDRESS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndName {
    namespace: String,
    interface: String,
    ip: IpAddr,
}

impl FromStr for EndName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [namespace, interface, ip] = parts[..] else {
            return Err("write an end as NAMESPACE/INTERFACE/ADDRESS".to_owned());
        };
        if namespace.is_empty() || interface.is_empty() || interface.len() >= NAME {
            return Err(
                "an end has a namespace, and an interface whose name has 1 to 15 bytes".to_owned(),
            );
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            interface: interface.to_owned(),
            ip: ip.parse().map_err(|_| format!("{ip} is not an address"))?,
        })
    }
}

/// The ends of the link, and their namespaces, which live as long as their files are open.
#[derive(Debug)]
struct Link {
    ends: [LinkEnd; 2],
    _namespaces: [File; 2],
}

/// The link of this process.
static LINK: Mutex<Option<Link>> = Mutex::new(None);

/// Uses these ends instead of making a link.
///
/// # Errors
/// There is no such namespace.
pub(crate) fn use_ends(near: &EndName, far: &EndName) -> anyhow::Result<()> {
    let open = |end: &EndName| {
        let path = format!("/run/netns/{}", end.namespace);
        let file = File::open(&path).with_context(|| path.clone())?;
        let place = LinkEnd::of(&file, &end.interface, end.ip);
        anyhow::Ok((place, file))
    };
    let ((near, near_file), (far, far_file)) = (open(near)?, open(far)?);
    *LINK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Link {
        ends: [near, far],
        _namespaces: [near_file, far_file],
    });
    Ok(())
}

/// Both ends of a link: the client's, and the server's, which opens first.
///
/// # Errors
/// The link needs interfaces, and this process may not make namespaces.
pub(crate) fn ends(kind: Kind) -> anyhow::Result<[End; 2]> {
    match kind {
        Kind::Xdp(mode) => Ok(places(Some(mode))?.map(End::Interface)),
        Kind::Kernel => Ok(places(None)?.map(End::Interface)),
        Kind::Dpdk => Ok(device::pair().map(End::Device)),
    }
}

/// Both ends of the link of interfaces, for a program that runs in this mode. If the command names
/// no ends, the first call makes the link.
fn places(mode: Option<Mode>) -> anyhow::Result<[LinkEnd; 2]> {
    let mut link = LINK.lock().unwrap_or_else(PoisonError::into_inner);
    let link = match &mut *link {
        Some(link) => link,
        none => none.insert(make().context("making a link needs root; or pass --ends")?),
    };
    Ok(link.ends.map(|place| LinkEnd { mode, ..place }))
}

fn make() -> anyhow::Result<Link> {
    let namespaces = [namespace::make()?, namespace::make()?];
    let ips = [[10, 79, 1, 1], [10, 79, 1, 2]].map(Ipv4Addr::from);
    let [near, far] = &namespaces;
    let there = path_of(std::process::id(), far.as_raw_fd());
    ip(
        near,
        &format!(
            "link add {INTERFACE} mtu {MTU} type veth peer name {INTERFACE} mtu {MTU} netns {there}"
        ),
    )?;
    for (namespace, address) in namespaces.iter().zip(ips) {
        // Without an IPv6 address, the interface sends no packets by itself, such as router
        // solicitations.
        ip(namespace, &format!("link set {INTERFACE} addrgenmode none"))?;
        ip(namespace, &format!("addr add {address}/24 dev {INTERFACE}"))?;
        ip(namespace, &format!("link set {INTERFACE} up"))?;
        ip(namespace, "link set lo up")?;
    }
    let ends = [
        LinkEnd::of(near, INTERFACE, ips[0].into()),
        LinkEnd::of(far, INTERFACE, ips[1].into()),
    ];
    Ok(Link {
        ends,
        _namespaces: namespaces,
    })
}

/// Runs a command of `ip` in a namespace.
fn ip(namespace: &File, arguments: &str) -> anyhow::Result<()> {
    let output = namespace::within(namespace, || {
        Command::new("ip").args(arguments.split(' ')).output()
    })?
    .context("ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {arguments}: {}", said.trim());
    Ok(())
}

fn path_of(process: u32, descriptor: i32) -> String {
    format!("/proc/{process}/fd/{descriptor}")
}

impl End {
    /// Moves the calling thread, and all threads that it starts from now on, to this end. Returns
    /// the address of the nexus there.
    ///
    /// # Errors
    /// The parent has ended, or this process may not enter its namespace.
    pub(crate) fn enter(&self) -> anyhow::Result<IpAddr> {
        match self {
            Self::Interface(place) => place.enter().map(|()| place.ip),
            Self::Device(_) => Ok(Ipv4Addr::LOCALHOST.into()),
        }
    }
}

impl LinkEnd {
    fn of(namespace: &File, interface: &str, ip: IpAddr) -> Self {
        let mut name = [0; NAME];
        name[..interface.len()].copy_from_slice(interface.as_bytes());
        Self {
            process: std::process::id(),
            descriptor: namespace.as_raw_fd(),
            interface: name,
            ip,
            mode: None,
        }
    }

    fn enter(&self) -> anyhow::Result<()> {
        let path = path_of(self.process, self.descriptor);
        let Ok(file) = File::open(&path) else {
            bail!("{path} is gone");
        };
        namespace::enter(&file).with_context(|| format!("cannot enter {path}"))
    }

    /// The name of its interface.
    pub(crate) fn interface(&self) -> &str {
        let name = self.interface.split(|byte| *byte == 0).next();
        std::str::from_utf8(name.unwrap_or_default()).unwrap_or_default()
    }

    /// Whether the program runs in the driver.
    pub(crate) fn is_native(&self) -> bool {
        self.mode == Some(Mode::Native)
    }
}

#[cfg(test)]
mod tests;
