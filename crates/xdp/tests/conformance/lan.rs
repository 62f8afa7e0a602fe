//! A local network: a bridge in one namespace, and hosts that are attached to it by an interface
//! `link0`, each in a namespace of its own. It needs root and `ip`. It has only IPv4: the kernel
//! has room for about a thousand neighbours in all namespaces together, and those of IPv6 would use
//! it up.
//!
//! Invariant: the namespaces are named after this process, and go when the [`Lan`] is dropped.

use std::fmt::Write;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use dunlin_testkit::skip;

/// Hosts: more than the suite has endpoints at a time.
const HOSTS: u8 = 73;

/// A host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    name: String,
    pub(crate) address: IpAddr,
}

/// The network.
#[derive(Debug)]
pub(crate) struct Lan {
    bridge: String,
    hosts: Vec<Host>,
    next: usize,
}

impl Lan {
    /// `None`, after giving the reason, if this machine does not permit it.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: asks for a number.
        if unsafe { libc::geteuid() } != 0 {
            skip("network namespaces need root");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("dunlin-lan-{}-{number}", std::process::id());
        let host = |host: u8| Host {
            name: format!("{prefix}-{host}"),
            address: IpAddr::from([10, 80, 0, host]),
        };
        let lan = Self {
            bridge: format!("{prefix}-bridge"),
            hosts: (1..=HOSTS).map(host).collect(),
            next: 0,
        };
        match lan.build() {
            Ok(()) => Some(lan),
            Err(why) => {
                skip(&why);
                None
            }
        }
    }

    /// The next one of the first `count` hosts, which take turns.
    pub(crate) fn next_of(&mut self, count: usize) -> &Host {
        self.next += 1;
        &self.hosts[self.next % count.min(self.hosts.len())]
    }

    fn build(&self) -> Result<(), String> {
        let mut names = format!("netns add {}\n", self.bridge);
        let mut links = "link add br0 type bridge mcast_snooping 0\nlink set br0 up\n".to_owned();
        for (port, host) in self.hosts.iter().enumerate() {
            let name = &host.name;
            let _ = writeln!(names, "netns add {name}");
            let _ = writeln!(
                links,
                "link add p{port} type veth peer name link0 netns {name}\n\
                 link set p{port} master br0\nlink set p{port} up"
            );
        }
        batch(&[], &names)?;
        batch(&["-n", &self.bridge], &links)?;
        for host in &self.hosts {
            let commands = format!(
                "addr add {}/16 dev link0\nlink set link0 addrgenmode none\n\
                 link set link0 up\nlink set lo up\n",
                host.address
            );
            batch(&["-n", &host.name], &commands)?;
        }
        Ok(())
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        let names = self.hosts.iter().map(|host| &host.name);
        let commands = names
            .chain([&self.bridge])
            .fold(String::new(), |all, name| {
                all + &format!("netns del {name}\n")
            });
        // A namespace that was never made cannot be deleted; that is no error.
        let _ = batch(&["-force"], &commands);
    }
}

impl Host {
    /// Runs `task` here, in a thread of its own.
    pub(crate) fn run<R: Send>(&self, task: impl FnOnce() -> R + Send) -> R {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).unwrap();
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // SAFETY: a live descriptor of a network namespace; it concerns this thread alone.
                let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
                assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
                task()
            });
            inside.join().unwrap()
        })
    }
}

/// Runs commands of `ip`.
fn batch(arguments: &[&str], commands: &str) -> Result<(), String> {
    let child = Command::new("ip")
        .args(arguments)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("ip: {error}"))?;
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(commands.as_bytes())
        .map_err(|error| error.to_string())?;
    drop(input);
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
