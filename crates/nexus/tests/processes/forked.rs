//! A process that forks while a handler runs: its child overwrites all memory that it has
//! inherited, and no byte of the handler's slice changes in the parent.

use std::fs;
use std::os::fd::RawFd;
use std::time::Duration;

use dunlin_core::Tag;
use dunlin_nexus::{Nexus, Rpc};
use dunlin_transport::shm::Shm;

use super::child::{Server, say};
use super::{App, LOOK, endpoint};

/// Lengths of two requests: one stays in the ring of a channel within the process, and the
/// receiving endpoint copies the other into a msgbuf.
const LENS: [usize; 2] = [700, 64 << 10];

/// The beginning of the names of all memory files of the library.
const MEMORY: &str = "/memfd:dunlin";

/// The bytes that the child writes.
static JUNK: [u8; LENS[1]] = [0xEE; LENS[1]];

#[test]
fn a_forked_child_changes_no_request_under_its_handler() {
    let mut process = Server::forker();
    for len in LENS {
        assert_eq!(process.expect("looked"), format!("{len} the same"));
    }
}

/// The program of the process that forks. Both of its endpoints run in this thread.
pub(super) fn run(nexus: &Nexus) {
    let mut server: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    server.on(LOOK, |(), request, cx| {
        let data = request.data();
        let before = data.to_vec();
        overwrite_in_child(data);
        let is_same = std::hint::black_box(data) == before;
        let outcome = ["changed", "the same"][usize::from(is_same)];
        say(&format!("looked {} {outcome}", data.len()));
        request.reply(cx, 0, |_| {});
    });
    let mut client = endpoint::<Shm>(nexus);
    let session = client.connect(nexus.address()).unwrap();
    let mut run = |client: &mut Rpc<Shm, App>| {
        client.run_for(Duration::from_micros(100));
        server.run_for(Duration::from_micros(100));
    };
    while !client.session_info(session).unwrap().open {
        run(&mut client);
    }
    for len in LENS {
        let mut request = client.buf(len).unwrap();
        request.data_mut().fill(7);
        let response = client.buf(8).unwrap();
        client
            .call(session, LOOK, request, response, Tag(0))
            .unwrap();
        while client.app_mut().done.pop().is_none() {
            run(&mut client);
        }
    }
}

/// Forks. The child overwrites the slice, if it has inherited it, and all memory files.
fn overwrite_in_child(data: &[u8]) {
    // Everything that allocates is done before the fork, because only one of several threads exists
    // in the child.
    let files = memory_files();
    let at = i64::try_from(data.as_ptr().addr()).unwrap();
    // SAFETY: the child only makes system calls, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: plain system calls with a static string and static memory.
        unsafe {
            for (file, len) in files {
                for place in (0..len).step_by(JUNK.len()) {
                    libc::pwrite(file, JUNK.as_ptr().cast(), JUNK.len(), place);
                }
            }
            // This is the child's own memory. The write fails if the child has not inherited the
            // slice.
            let memory = libc::open(c"/proc/self/mem".as_ptr(), libc::O_RDWR);
            libc::pwrite(memory, JUNK.as_ptr().cast(), data.len(), at);
            libc::_exit(i32::from(memory < 0));
        }
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the number lives until the call returns.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has overwritten the memory");
}

/// The descriptors of memory files that a child inherits, with their lengths.
fn memory_files() -> Vec<(RawFd, i64)> {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let files = open.filter_map(|entry| {
        let name = fs::read_link(entry.path()).ok()?;
        let is_memory = name.to_string_lossy().starts_with(MEMORY);
        let len = fs::metadata(entry.path()).ok()?.len();
        let number = entry.file_name().to_str()?.parse().ok()?;
        is_memory.then(|| (number, i64::try_from(len).unwrap()))
    });
    files.collect()
}
