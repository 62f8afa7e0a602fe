//! Channels within one process: no other process can write to them, whatever it claims, relays,
//! opens or inherits.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use dunlin_core::transport::{PeerId, Rx};
use dunlin_transport::connect::{ConnectError, Offer, PeerInfo};

use dunlin_transport::shm::Options;

use super::endpoint::{End, info};

/// A packet that is longer than a cell, so a trusted channel shows it in place.
const LONG: u64 = 1002;

/// A number of cells that no other test of this process uses, so that this test can recognise the
/// memory of its rings.
const CELLS: u32 = 1024;

fn end(uid: u8) -> End {
    let cells = CELLS;
    let options = Options {
        cells,
        ..Options::default()
    };
    End::with(uid, options)
}

/// A peer that claims to be in this process.
fn here(uid: u8) -> PeerInfo {
    let same_process = true;
    PeerInfo {
        same_process,
        proves: true,
        ..info(uid)
    }
}

/// Connects two ends. Each believes that its peer, which is the other end or a relay between them,
/// is an endpoint of this process. Returns the ends, the first end's id for its peer, and the
/// memory that another process could open during the set-up.
fn ends([first, second]: [u8; 2]) -> (End, End, PeerId, Vec<File>) {
    let (mut a, mut b) = (end(1), end(2));
    let (pending, offer) = a.offer(&here(first)).unwrap();
    let opened = memory_files();
    let (_, answer) = b.accept(&here(second), offer).unwrap();
    let to = a.complete(pending, answer).unwrap();
    (a, b, to, opened)
}

/// Overwrites all of a file of memory; false if it cannot be written.
fn scribble(file: &File) -> bool {
    let len = file.metadata().unwrap().len();
    let junk = vec![0xEE; usize::try_from(len).unwrap()];
    file.write_all_at(&junk, 0).is_ok()
}

/// The frame that a burst shows, before and after `meanwhile` has run.
fn shown(end: &mut End, meanwhile: impl FnOnce()) -> [Vec<u8>; 2] {
    assert_eq!(end.rx.burst(), 1);
    let frame = end.rx.frame(0).bytes;
    let before = frame.to_vec();
    meanwhile();
    [before, std::hint::black_box(frame).to_vec()]
}

/// The memory files of this test's channels, as another process of this user would open them.
fn memory_files() -> Vec<File> {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let of_channels = open.filter(|entry| {
        let name = fs::read_link(entry.path()).unwrap_or_default();
        let len = fs::metadata(entry.path()).map_or(0, |found| found.len());
        name.to_string_lossy().contains("dunlin-channel") && len == 4096 + 2 * 64 * u64::from(CELLS)
    });
    let paths: Vec<_> = of_channels.map(|entry| entry.path()).collect();
    let open = |path| OpenOptions::new().write(true).open(path).ok();
    paths.into_iter().filter_map(open).collect()
}

#[test]
fn a_peer_that_claims_to_be_in_this_process_is_not_believed() {
    let (mut liar, mut victim) = (End::new(1), End::new(2));
    // The liar can write to the memory, because it has the descriptor, which an endpoint of this
    // process would not offer.
    let (pending, offer) = liar.offer(&info(2)).unwrap();
    let memory = File::from(offer.fds[0].try_clone().unwrap());
    let (_, answer) = victim.accept(&here(1), offer).unwrap();
    let to = liar.complete(pending, answer).unwrap();
    assert!(liar.send(to, LONG));
    let [before, after] = shown(&mut victim, || assert!(scribble(&memory)));
    assert!(before == after, "the frame was changed while it was shown");
}

#[test]
fn a_channel_offered_within_the_process_cannot_be_taken_outside() {
    let (mut victim, mut relayed) = (end(1), end(2));
    let (pending, offer) = victim.offer(&here(9)).unwrap();
    assert_eq!(offer.fds.len(), 0, "nothing goes over the socket");
    // The liar answers the offer itself, with a doorbell of its own and the offered name.
    let (mut liar, mut other) = (End::new(9), End::new(8));
    let (_, real) = liar.offer(&other.info()).unwrap();
    let (_, mut forged) = other.accept(&liar.info(), real).unwrap();
    forged.bytes[12..].copy_from_slice(&offer.bytes[12..]);
    let fds = forged.fds.iter().map(|fd| fd.try_clone().unwrap());
    let fds: Vec<OwnedFd> = fds.collect();
    let bytes = forged.bytes.clone();
    assert!(victim.complete(pending, Offer { bytes, fds }).is_err());
    // The liar has the offer relayed, after the victim has given it up.
    let refused = relayed.accept(&here(1), offer);
    assert!(matches!(refused, Err(ConnectError::Gone)), "{refused:?}");
}

/// Whether the ends meet directly or through a relay, the channel lies within this process, and no
/// other process can write to it.
#[test]
fn memory_of_a_channel_within_the_process_cannot_be_opened() {
    for met in [[2, 1], [9, 9]] {
        let (mut a, mut b, to, opened) = ends(met);
        assert!(a.send(to, LONG));
        let [before, after] = shown(&mut b, || assert!(opened.iter().all(scribble)));
        assert!(before == after, "the frame was changed while it was shown");
        assert_eq!(opened.len(), 0, "the memory has a descriptor");
    }
}

#[test]
fn a_forked_child_writes_into_its_own_copy() {
    let (mut a, mut b, to, _) = ends([2, 1]);
    assert!(a.send(to, 1));
    assert_eq!(b.receive(), [1]);
    // SAFETY: the child calls only functions that need no other thread, and then ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // The kernel gives the child no copy of the msgbufs.
        let sent = a.send_bare(to);
        // SAFETY: it ends the child without running exit handlers that other tests registered.
        unsafe { libc::_exit(i32::from(!sent)) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the number lives until the call returns.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child sent");
    assert_eq!(b.poll(), [0; 0]);
    assert!(a.send(to, 2));
    assert_eq!(b.receive(), [2]);
}

#[test]
fn both_directions_work_and_the_table_is_emptied() {
    let (mut a, mut b) = (end(1), end(2));
    let (pending, offer) = a.offer(&here(2)).unwrap();
    let (back, answer) = b.accept(&here(1), offer).unwrap();
    let to = a.complete(pending, answer).unwrap();
    for number in 0..200 {
        assert!(a.send(to, number) && b.send(back, number));
        assert_eq!(b.receive(), [number]);
        assert_eq!(a.receive(), [number]);
    }
    a.release(to);
    b.release(back);
    // An offer that was given up is no longer in the table.
    let (pending, offer) = a.offer(&here(2)).unwrap();
    a.abandon(pending);
    let gone = b.accept(&here(1), offer);
    assert!(matches!(gone, Err(ConnectError::Gone)), "{gone:?}");
}
