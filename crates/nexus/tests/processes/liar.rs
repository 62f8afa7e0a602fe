//! A peer over shared memory that claims, through a relay in a third process, to be the server's
//! own process. No byte of a handler's slice changes, whatever the peer writes into the memory that
//! both have mapped.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use dunlin_nexus::Nexus;
use dunlin_transport::shm::Shm;

use super::child::{Server, say};
use super::{LOOK, LOOKING, endpoint, issue};

/// Bytes of two requests. On a trusted channel, a handler sees the first request in the channel's
/// ring: it is longer than a short packet, which is always copied, and shorter than data that stays
/// in the client's memory. The second request stays there, and the server copies it into a msgbuf,
/// whose memory other processes map.
const LENS: [usize; 2] = [700, 64 << 10];

/// The beginning of the names of all memory files of the library.
const MEMORY: &str = "/memfd:dunlin";

#[test]
fn a_peer_that_claims_to_be_the_server_itself_changes_no_request_while_its_handler_runs() {
    // Each server gets only one request, because a handler that was slow once gets copies.
    for len in LENS {
        let mut server = Server::start::<Shm>(0);
        let relay = Server::relay(server.address);
        // The liar has its own process, because it overwrites all library memory of its process.
        let mut liar = Server::liar(relay.address, server.id(), len);
        assert_eq!(server.expect("looking"), len.to_string());
        assert_eq!(server.expect("looked"), "the same");
        let written: usize = liar.expect("written").parse().unwrap();
        assert!(written > 0, "no memory is shared");
    }
}

/// The program of the peer.
pub(super) fn run(nexus: &Nexus, relay: SocketAddr, server: u32, len: usize) -> ! {
    let mut rpc = endpoint::<Shm>(nexus);
    let session = rpc.connect_blocking(relay).unwrap();
    issue(&mut rpc, session, LOOK, &vec![7; len]);
    rpc.run_for(Duration::from_millis(20));
    let begun = Instant::now();
    let mut written = 0;
    while begun.elapsed() < LOOKING {
        written += through_descriptors(server) + through_mappings();
    }
    say(&format!("written {written}"));
    // This process's own msgbufs are overwritten, so they cannot be dropped.
    std::process::exit(0);
}

/// Overwrites the memory files that a process has open. Returns their number.
fn through_descriptors(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = files.filter_map(Result::ok).filter(|file| {
        let name = fs::read_link(file.path()).unwrap_or_default();
        name.to_string_lossy().starts_with(MEMORY)
    });
    let write = |path| {
        let file = OpenOptions::new().write(true).open(path).ok()?;
        let len = file.metadata().ok()?.len();
        overwrite(&file, 0, len)
    };
    links.filter_map(|link| write(link.path())).count()
}

/// Overwrites the memory files that this process has mapped. Returns their number.
fn through_mappings() -> usize {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem");
    let (memory, maps) = (memory.unwrap(), fs::read_to_string("/proc/self/maps"));
    let write = |line: &str| {
        let (start, rest) = line.split_once('-')?;
        let (end, rest) = rest.split_once(' ')?;
        let is_memory = rest.starts_with("rw-s") && rest.contains(MEMORY);
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap());
        is_memory.then_some(())?;
        overwrite(&memory, start, end - start)
    };
    maps.unwrap().lines().filter_map(write).count()
}

fn overwrite(file: &File, start: u64, len: u64) -> Option<()> {
    let junk = vec![0xEE; usize::try_from(len).ok()?];
    file.write_all_at(&junk, start).ok()
}
