//! Descriptors of the wrong kind, size or number.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use dunlin_transport::connect::{Connect, ConnectError, Offer};
use dunlin_transport::shm::Shm;

use crate::endpoint::End;

fn memory(len: i64, seals: i32) -> OwnedFd {
    // SAFETY: plain calls; the descriptor is new.
    unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING);
        assert!(fd >= 0 && libc::ftruncate(fd, len) == 0);
        assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, seals), 0);
        OwnedFd::from_raw_fd(fd)
    }
}

fn len_of(fd: &OwnedFd) -> i64 {
    let file = File::from(fd.try_clone().unwrap());
    i64::try_from(file.metadata().unwrap().len()).unwrap()
}

fn event() -> OwnedFd {
    // SAFETY: a plain call; the descriptor is new.
    unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, 0)) }
}

fn null() -> OwnedFd {
    File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap()
        .into()
}

/// Descriptors that a hostile peer may send in the place of memory of `len` bytes.
fn not_memory(len: i64) -> Vec<OwnedFd> {
    let sealed = libc::F_SEAL_SHRINK;
    let (_, pipe) = std::io::pipe().unwrap();
    vec![
        memory(len, 0),
        memory(len - 1, sealed),
        memory(len - 4096, sealed),
        memory(len + 4096, sealed),
        memory(0, sealed),
        memory(len, sealed | libc::F_SEAL_WRITE),
        event(),
        null(),
        pipe.into(),
        File::open("/proc/self/exe").unwrap().into(),
    ]
}

#[test]
fn memory_whose_access_could_fail_is_not_mapped() {
    for which in 0..2 {
        let cases = {
            let mut end = End::new(1);
            let (pending, offer) = end.offer(&End::new(2).info()).unwrap();
            Shm::abandon(&mut end.rx, &mut end.tx, pending);
            not_memory(len_of(&offer.fds[which])).len()
        };
        for case in 0..cases {
            let (mut a, mut b) = (End::new(1), End::new(2));
            let (_pending, mut offer) = a.offer(&b.info()).unwrap();
            let len = len_of(&offer.fds[which]);
            offer.fds[which] = not_memory(len).swap_remove(case);
            let refused = b.accept(&a.info(), offer);
            let error = refused.expect_err("the descriptor was accepted as memory");
            let expected = matches!(error, ConnectError::Descriptor | ConnectError::Os(_));
            assert!(expected, "descriptor {which}, case {case}: {error}");
        }
    }
}

#[test]
fn the_descriptors_of_an_answer_are_checked_as_well() {
    let cases = not_memory(4096).len();
    for case in 0..cases {
        let (mut a, mut b) = (End::new(1), End::new(2));
        let (pending, offer) = a.offer(&b.info()).unwrap();
        let (_, mut answer) = b.accept(&a.info(), offer).unwrap();
        let len = len_of(&answer.fds[0]);
        answer.fds[0] = not_memory(len).swap_remove(case);
        assert!(a.complete(pending, answer).is_err(), "case {case}");
        a.connect(&mut b);
    }
}

#[test]
fn too_few_and_too_many_descriptors_are_refused() {
    for count in [0, 1, 2, 4] {
        let (mut a, mut b) = (End::new(1), End::new(2));
        let (_pending, mut offer) = a.offer(&b.info()).unwrap();
        offer.fds.truncate(count);
        while offer.fds.len() < count {
            offer.fds.push(event());
        }
        let refused = b.accept(&a.info(), offer);
        assert!(
            matches!(refused, Err(ConnectError::Descriptor)),
            "{count} descriptors"
        );
    }
    let (mut a, mut b) = (End::new(1), End::new(2));
    let (pending, offer) = a.offer(&b.info()).unwrap();
    let (_, answer) = b.accept(&a.info(), offer).unwrap();
    let answer = Offer {
        fds: Vec::new(),
        ..answer
    };
    assert!(a.complete(pending, answer).is_err());
}

#[test]
fn a_descriptor_that_is_no_wake_up_line_never_blocks() {
    let full_pipe = || -> OwnedFd {
        let (reader, writer) = std::io::pipe().unwrap();
        std::mem::forget(reader);
        // SAFETY: plain calls. The pipe is blocking again once it is full.
        unsafe {
            let fd = writer.as_raw_fd();
            libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK);
            let bytes = [0_u8; 65536];
            while libc::write(fd, bytes.as_ptr().cast(), bytes.len()) > 0 {}
            libc::fcntl(fd, libc::F_SETFL, 0);
        }
        writer.into()
    };
    let full_event = || {
        let event = event();
        let most = (u64::MAX - 1).to_ne_bytes();
        // SAFETY: the bytes outlive the call.
        unsafe { libc::write(event.as_raw_fd(), most.as_ptr().cast(), 8) };
        event
    };
    let lines: [&dyn Fn() -> OwnedFd; 4] = [&full_pipe, &full_event, &event, &null];
    for line in lines {
        let (mut a, mut b) = (End::new(1), End::new(2));
        let (pending, mut offer) = a.offer(&b.info()).unwrap();
        offer.fds[2] = line();
        // A line that epoll cannot watch is refused; any other one must not block us.
        let Ok((to_a, answer)) = b.accept(&a.info(), offer) else {
            continue;
        };
        a.complete(pending, answer).unwrap();
        for number in 0..50 {
            a.sleep(std::time::Duration::ZERO);
            Shm::arm(&mut a.rx, &mut a.tx);
            b.send(to_a, number);
            Shm::disarm(&mut a.rx, &mut a.tx);
            b.sleep(std::time::Duration::ZERO);
        }
        assert!(!a.receive().is_empty());
    }
}

/// The system's setting for huge pages in shared memory, as it was before.
struct HugePages(String);

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

impl HugePages {
    /// Changes the setting to `always`. `None` if this user cannot, or if the kernel has no such
    /// setting.
    fn always() -> Option<Self> {
        let before = std::fs::read_to_string(HUGE_PAGES).ok()?;
        let (_, rest) = before.split_once('[')?;
        let (before, _) = rest.split_once(']')?;
        let before = Self(before.to_owned());
        std::fs::write(HUGE_PAGES, "always").ok()?;
        Some(before)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = std::fs::write(HUGE_PAGES, &self.0);
    }
}

#[test]
fn memory_that_may_have_huge_pages_is_mapped() {
    let Some(_always) = HugePages::always() else {
        return println!("skipped: this user cannot change {HUGE_PAGES}");
    };
    let huge = File::from(memory(4 << 20, libc::F_SEAL_SHRINK));
    assert!(huge.metadata().unwrap().blksize() > 4096);
    let (mut a, mut b) = (End::new(1), End::new(2));
    a.connect(&mut b);
}
