//! Two devices of memif in one process, connected with each other.

use std::path::PathBuf;

/// Both devices, and the socket at which they meet. `place` gives each device its address and
/// further options.
///
/// Two devices of a process must not give one socket the same name, so the second names it by
/// another path.
pub(crate) fn devices(network: u32, place: impl Fn(u32) -> String) -> (Socket, [String; 2]) {
    let socket = Socket::of(network);
    let folder = std::env::temp_dir();
    let name = socket.0.file_name().unwrap().to_string_lossy();
    let devices = [(1, "server", "."), (2, "client", "./.")].map(|(number, role, detour)| {
        format!(
            "net_memif{},role={role},socket-abstract=no,socket={}/{detour}/{name};{};{}",
            2 * network + number,
            folder.display(),
            place(number),
            ARGUMENTS,
        )
    });
    (socket, devices)
}

/// Arguments of DPDK that need no huge pages. A process can use only one set of them.
pub(crate) const ARGUMENTS: &str = "--no-huge -m 1600";

/// The socket at which two devices meet. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct Socket(PathBuf);

impl Socket {
    fn of(network: u32) -> Self {
        let name = format!("dunlin-dpdk-{}-{network}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
