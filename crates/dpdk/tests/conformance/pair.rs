//! Two devices of memif in one process, connected with each other.

use dunlin_dpdk::Site;

/// The sites of both devices, in a network of their own.
///
/// They meet at a socket in the system's folder for temporary files. Two devices of a process must
/// not name one socket alike, so the second names it by another path.
pub(crate) fn sites(network: u8, options: &str) -> [Site; 2] {
    let folder = std::env::temp_dir();
    let socket = format!("dunlin-dpdk-{}-{network}", std::process::id());
    ["server", "client"].map(|role| {
        let (number, detour) = if role == "server" {
            (1, ".")
        } else {
            (2, "./.")
        };
        let device = 2 * u32::from(network) + number;
        let text = format!(
            "net_memif{device},role={role},socket-abstract=no,socket={}/{detour}/{socket};\
             ip=10.82.{network}.{number}/24{options};--no-huge -m 256",
            folder.display()
        );
        text.parse().unwrap()
    })
}
