//! Two devices of memif in one process, connected with each other.

/// Both devices. `place` gives each its address and further options.
///
/// They meet at a socket in the system's folder for temporary files. Two devices of a process must
/// not name one socket alike, so the second names it by another path.
pub(crate) fn devices(network: u32, place: impl Fn(u32) -> String) -> [String; 2] {
    let folder = std::env::temp_dir();
    let socket = format!("dunlin-dpdk-{}-{network}", std::process::id());
    [(1, "server", "."), (2, "client", "./.")].map(|(number, role, detour)| {
        format!(
            "net_memif{},role={role},socket-abstract=no,socket={}/{detour}/{socket};{};{}",
            2 * network + number,
            folder.display(),
            place(number),
            ARGUMENTS,
        )
    })
}

/// Arguments of DPDK that need no huge pages. A process can use only one set of them.
pub(crate) const ARGUMENTS: &str = "--no-huge -m 320";

/// Removes the sockets when the tests of a process end.
#[derive(Debug)]
pub(crate) struct Sockets;

impl Drop for Sockets {
    fn drop(&mut self) {
        let own = format!("dunlin-dpdk-{}-", std::process::id());
        for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&own) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
