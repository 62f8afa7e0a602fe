//! A peer over shared memory that says it is the server's own process, through a relay that is
//! another process again: no byte of a handler's slice changes, whatever it writes into the
//! memory that both have mapped.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use dunlin_nexus::Nexus;
use dunlin_transport::shm::Shm;

use super::child::{Server, say};
use super::{LOOK, LOOKING, endpoint, issue};

/// Bytes of a request: more than a short packet, which is copied always, and fewer than data that
/// stays in the client's memory. A trusted channel shows such a request in its ring.
const LEN: usize = 700;

/// The name of the memory of channels.
const CHANNEL: &str = "/memfd:dunlin-channel";

#[test]
fn a_peer_that_says_hello_as_the_server_itself_changes_no_request_under_its_handler() {
    let mut server = Server::start::<Shm>(0);
    let relay = Server::relay(server.address);
    // In a process of its own, because it overwrites the channels of all tests of its process.
    let mut liar = Server::liar(relay.address, server.id());
    // Only one request for each server: a handler that was slow once gets copies.
    assert_eq!(server.expect("looking"), LEN.to_string());
    assert_eq!(server.expect("looked"), "the same");
    let written: usize = liar.expect("written").parse().unwrap();
    assert!(written > 0, "no memory is shared");
}

/// The whole life of the peer.
pub(super) fn run(nexus: &Nexus, relay: SocketAddr, server: u32) {
    let mut rpc = endpoint::<Shm>(nexus);
    let session = rpc.connect_blocking(relay).unwrap();
    issue(&mut rpc, session, LOOK, &[7; LEN]);
    rpc.run_for(Duration::from_millis(20));
    let begun = Instant::now();
    let mut written = 0;
    while begun.elapsed() < LOOKING {
        written += through_descriptors(server) + through_mappings();
    }
    say(&format!("written {written}"));
}

/// Overwrites the channels that a process has open; how many there were.
fn through_descriptors(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = files.filter_map(Result::ok).filter(|file| {
        let name = fs::read_link(file.path()).unwrap_or_default();
        name.to_string_lossy().starts_with(CHANNEL)
    });
    let write = |path| {
        let file = OpenOptions::new().write(true).open(path).ok()?;
        let len = file.metadata().ok()?.len();
        overwrite(&file, 0, len)
    };
    links.filter_map(|link| write(link.path())).count()
}

/// Overwrites the channels that this process has mapped; how many there were.
fn through_mappings() -> usize {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem");
    let (memory, maps) = (memory.unwrap(), fs::read_to_string("/proc/self/maps"));
    let write = |line: &str| {
        let (start, rest) = line.split_once('-')?;
        let (end, rest) = rest.split_once(' ')?;
        let is_channel = rest.starts_with("rw-s") && rest.contains(CHANNEL);
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap());
        is_channel.then_some(())?;
        overwrite(&memory, start, end - start)
    };
    maps.unwrap().lines().filter_map(write).count()
}

fn overwrite(file: &File, start: u64, len: u64) -> Option<()> {
    let junk = vec![0xEE; usize::try_from(len).ok()?];
    file.write_all_at(&junk, start).ok()
}
