//! A network of our own: two network namespaces with a link between them. It needs root and `ip`.

use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// One end of the link.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    name: String,
    pub(crate) address: &'static str,
}

/// Both ends. The namespaces are named after this process and go when this is dropped.
pub(crate) struct Network {
    pub(crate) left: Host,
    pub(crate) right: Host,
}

impl Network {
    /// `None`, after saying why, if this machine does not let us.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: asks for a number.
        if unsafe { libc::geteuid() } != 0 {
            crate::skip("network namespaces need root");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = |side, address| Host {
            name: format!("dunlin-e2e-{}-{number}-{side}", std::process::id()),
            address,
        };
        let network = Self {
            left: host("l", "10.79.0.1"),
            right: host("r", "10.79.0.2"),
        };
        match network.build() {
            Ok(()) => Some(network),
            Err(why) => {
                crate::skip(&why);
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        let (left, right) = (&self.left.name, &self.right.name);
        ip(&format!("netns add {left}"))?;
        ip(&format!("netns add {right}"))?;
        ip(&format!(
            "-n {left} link add link0 type veth peer name link0 netns {right}"
        ))?;
        for host in [&self.left, &self.right] {
            host.ip(&format!("addr add {}/24 dev link0", host.address))?;
            host.ip("link set link0 up")?;
            host.ip("link set lo up")?;
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in [&self.left, &self.right] {
            // A namespace that was never made cannot be deleted, and that is all right.
            let _ = ip(&format!("netns del {}", host.name));
        }
    }
}

impl Host {
    /// Changes something about the host's network.
    pub(crate) fn ip(&self, arguments: &str) -> Result<(), String> {
        ip(&format!("-n {} {arguments}", self.name))
    }

    /// Moves the calling thread here, with all threads and processes that it starts from now on.
    pub(crate) fn enter(&self) {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).unwrap();
        // SAFETY: a live descriptor of a network namespace; it concerns this thread alone.
        let entered = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(entered, 0, "{}", std::io::Error::last_os_error());
    }

    /// Runs `task` here, in a thread of its own.
    pub(crate) fn run<R: Send>(&self, task: impl FnOnce() -> R + Send) -> R {
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

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("ip {arguments}: {why}"))
}
