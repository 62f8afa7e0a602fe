//! A private network for a test: two network namespaces and a link between them, which can have
//! another MTU, lose packets or go down. It needs root and `ip`.
//!
//! Invariant: the namespaces are named after this process, and are deleted when the [`Network`] is
//! dropped.

use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::skip;

/// One end of the link, which is its device `link0`.
#[derive(Clone, Debug)]
pub struct Host {
    name: String,
    /// Its IPv4 address.
    pub address: &'static str,
    /// Its IPv6 address.
    pub address_6: &'static str,
}

/// Both ends.
#[derive(Debug)]
pub struct Network {
    /// One end.
    pub left: Host,
    /// The other end.
    pub right: Host,
}

impl Network {
    /// Makes the network. Prints the reason and returns `None` if this machine does not permit it.
    pub fn new() -> Option<Self> {
        Self::made("", "")
    }

    /// Like [`Self::new`], with this number of queues at the right end. All packets from the left
    /// end arrive at the first queue.
    pub fn with_queues(queues: u32) -> Option<Self> {
        Self::made(&queues_of(queues), "")
    }

    /// Like [`Self::new`], with this number of queues at both ends. The packets of different
    /// sockets arrive at different queues.
    pub fn with_queues_at_both_ends(queues: u32) -> Option<Self> {
        Self::made(&queues_of(queues), &queues_of(queues))
    }

    /// Makes the network. The arguments go to `ip link add`, for the right and the left end.
    fn made(right: &str, left: &str) -> Option<Self> {
        // SAFETY: the call only returns a number.
        if unsafe { libc::geteuid() } != 0 {
            skip("network namespaces need root");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = |side, address, address_6| Host {
            name: format!("dunlin-{}-{number}-{side}", std::process::id()),
            address,
            address_6,
        };
        let network = Self {
            left: host("l", "10.79.0.1", "fd79::1"),
            right: host("r", "10.79.0.2", "fd79::2"),
        };
        match network.build(right, left) {
            Ok(()) => Some(network),
            Err(why) => {
                skip(&why);
                None
            }
        }
    }

    /// Makes another link between both ends, `link1`, with the addresses `PREFIX.1` at the left and
    /// `PREFIX.2` at the right.
    ///
    /// # Panics
    /// If `ip` refuses.
    pub fn link_further(&self, prefix: &str) {
        let [left, right] = [&self.left, &self.right];
        let peer = format!("type veth peer name link1 netns {}", left.name);
        let made = right.ip(&format!("link add link1 {peer}"));
        made.expect("the first link was made, too");
        for (host, number) in [(left, 1), (right, 2)] {
            let address = format!("addr add {prefix}.{number}/24 dev link1");
            host.ip(&address).expect("an address");
            host.ip("link set link1 up").expect("it is there");
        }
    }

    fn build(&self, of_right: &str, of_left: &str) -> Result<(), String> {
        let (left, right) = (&self.left.name, &self.right.name);
        ip(&format!("netns add {left}"))?;
        ip(&format!("netns add {right}"))?;
        ip(&format!(
            "-n {right} link add link0 {of_right}type veth peer name link0 {of_left}netns {left}"
        ))?;
        for host in [&self.left, &self.right] {
            host.ip(&format!("addr add {}/24 dev link0", host.address))?;
            host.ip(&format!("addr add {}/64 dev link0 nodad", host.address_6))?;
            host.ip("link set link0 up")?;
            host.ip("link set lo up")?;
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in [&self.left, &self.right] {
            // A namespace that was never made cannot be deleted; that is not an error.
            let _ = ip(&format!("netns del {}", host.name));
        }
    }
}

impl Host {
    /// Number of XDP programs at this end of the link. The program of a process that has just ended
    /// may still be there: children of other tests keep copies of its descriptor until they execute
    /// their programs.
    ///
    /// # Panics
    /// If `ip` does not show the link.
    pub fn xdp_programs(&self) -> usize {
        self.link().matches("prog/xdp").count()
    }

    /// The number of the XDP program at this end of the link, if there is one.
    ///
    /// # Panics
    /// If `ip` does not show the link.
    pub fn xdp_program(&self) -> Option<u32> {
        let shown = self.link();
        let (_, after) = shown.split_once("prog/xdp id ")?;
        after.split_whitespace().next()?.parse().ok()
    }

    /// This end of the link as `ip` shows it: flags, MTU, promiscuity, numbers of queues, limits of
    /// packets, and its XDP program.
    ///
    /// # Panics
    /// If `ip` does not show the link.
    pub fn link(&self) -> String {
        let shown = ip(&format!("-n {} -d link show link0", self.name));
        shown.expect("`ip` was there before")
    }

    /// This host's namespace and address, with an interface of it: `NAMESPACE/INTERFACE/ADDRESS`.
    pub fn place(&self, interface: &str) -> String {
        format!("{}/{interface}/{}", self.name, self.address)
    }

    /// Runs an `ip` command in this host's namespace.
    ///
    /// # Errors
    /// The message of `ip`.
    pub fn ip(&self, arguments: &str) -> Result<(), String> {
        ip(&format!("-n {} {arguments}", self.name)).map(|_| ())
    }

    /// Runs a command of another tool in this namespace.
    ///
    /// # Errors
    /// The message of the command.
    pub fn execute(&self, command: &str) -> Result<(), String> {
        ip(&format!("netns exec {} {command}", self.name)).map(|_| ())
    }

    /// Makes the kernel compute whole checksums at this end of the link, as for a device without
    /// checksum offload. Otherwise the kernel leaves them to the link, which computes none either.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn write_sums(&self) {
        /// `ETHTOOL_STXCSUM`.
        const SUMS: u32 = 0x17;
        self.set_feature(SUMS, 0);
    }

    /// Makes this end of the link join the datagrams of sockets that permit it (`UDP_GRO`), as
    /// cards do.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn join_datagrams(&self) {
        /// `ETHTOOL_SGRO`.
        const JOIN: u32 = 0x2C;
        self.set_feature(JOIN, 1);
    }

    /// Sets a feature of this end of the link (`ethtool -K`).
    fn set_feature(&self, feature: u32, value: u32) {
        self.run(|| {
            let mut feature = [feature, value];
            // SAFETY: a request is plain data.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            for (place, byte) in request.ifr_name.iter_mut().zip(b"link0") {
                *place = byte.cast_signed();
            }
            request.ifr_ifru.ifru_data = feature.as_mut_ptr().cast();
            let socket = std::net::UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
            let command = libc::SIOCETHTOOL;
            // SAFETY: the request is live, and has the name of an interface and a pointer to a live
            // value.
            let rc = unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut request) };
            assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
        });
    }

    /// Packets that this end of the link has sent.
    ///
    /// # Panics
    /// If the kernel does not report the number.
    pub fn sent_packets(&self) -> u64 {
        let path = "/sys/class/net/link0/statistics/tx_packets";
        let text = ip(&format!("netns exec {} cat {path}", self.name)).expect("the link is there");
        text.trim().parse().expect("a number")
    }

    /// Moves the calling thread, and all threads and processes that it starts from now on, into
    /// this namespace.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn enter(&self) {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).expect("it was made");
        // SAFETY: the descriptor is live, and the call affects only this thread.
        let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
    }

    /// Runs `task` in this namespace, in a thread of its own.
    pub fn run<R: Send>(&self, task: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter();
                task()
            });
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// The arguments of `ip link add` for this number of queues.
fn queues_of(queues: u32) -> String {
    format!("numrxqueues {queues} numtxqueues {queues} ")
}

/// Runs `ip`. Returns its output, or its error message.
fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("ip {arguments}: {why}"))
}
