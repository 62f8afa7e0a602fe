//! Tests of `sys`: properties of a mapping, with and without a file descriptor.

use super::*;

fn bytes(mapping: &Mapping) -> &[u8] {
    // SAFETY: the mapping is alive, and nothing writes to it meanwhile.
    unsafe { std::slice::from_raw_parts(mapping.base().as_ptr(), mapping.len()) }
}

#[test]
fn a_mapping_is_zeroed_and_aligned_whatever_it_is_backed_by() {
    for (shared, hugepages) in [(false, false), (true, false), (true, true)] {
        let mapping = Mapping::new(1 << 20, shared, hugepages).expect("a megabyte is available");
        assert!(mapping.len() >= 1 << 20);
        assert_eq!(mapping.base().as_ptr().addr() % 4096, 0);
        assert!(bytes(&mapping)[..4096].iter().all(|&byte| byte == 0));
        assert_ne!(mapping.backing(), Backing::User);
        if !shared {
            assert_eq!(mapping.backing(), Backing::Private);
        }
        assert_eq!(
            mapping.fd().is_some(),
            mapping.backing() != Backing::Private
        );
        // SAFETY: the mapping is writable, and this test alone uses it.
        unsafe { mapping.base().as_ptr().add(mapping.len() - 1).write(7) };
        assert_eq!(bytes(&mapping)[mapping.len() - 1], 7);
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri stops when an allocation is refused")]
fn mappings_that_the_system_cannot_provide_are_refused() {
    assert!(Mapping::new(1 << 60, true, false).is_none());
    assert!(Mapping::new(1 << 60, false, false).is_none());
}

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) mod descriptor {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::ptr::NonNull;

    fn map_again(mapping: &Mapping, access: i32) -> *mut libc::c_void {
        let fd = mapping
            .fd()
            .expect("shared memory has a descriptor")
            .as_raw_fd();
        // SAFETY: a new mapping, which replaces none of ours.
        unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapping.len(),
                access,
                libc::MAP_SHARED,
                fd,
                0,
            )
        }
    }

    #[test]
    fn other_processes_can_read_but_not_write_shrink_or_unseal() {
        let mapping = Mapping::new(1 << 16, true, false).expect("64 KiB are available");
        let window = map_again(&mapping, libc::PROT_READ);
        assert_ne!(window, libc::MAP_FAILED);
        // SAFETY: our mapping is writable.
        unsafe { mapping.base().as_ptr().add(100).write(42) };
        // SAFETY: the window is a readable mapping of the same length.
        assert_eq!(unsafe { window.cast::<u8>().add(100).read_volatile() }, 42);
        // SAFETY: the window was mapped above and is not used any more.
        assert_eq!(unsafe { libc::munmap(window, mapping.len()) }, 0);

        assert_eq!(
            map_again(&mapping, libc::PROT_READ | libc::PROT_WRITE),
            libc::MAP_FAILED
        );
        let fd = mapping
            .fd()
            .expect("shared memory has a descriptor")
            .as_raw_fd();
        // SAFETY: plain system calls on a descriptor that is open.
        unsafe {
            assert_eq!(libc::ftruncate(fd, 0), -1);
            assert_eq!(libc::write(fd, b"x".as_ptr().cast(), 1), -1);
            assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_WRITE), -1);
        }
    }

    #[test]
    fn memory_is_taken_only_where_it_is_touched() {
        let mapping = Mapping::new(64 << 20, true, false).expect("address space is available");
        // SAFETY: our mapping is writable.
        unsafe { mapping.base().as_ptr().write(1) };
        let mut resident = vec![0_u8; mapping.len() / 4096];
        let base = mapping.base().as_ptr().cast();
        // SAFETY: the vector has a byte for each page of the mapping.
        let rc = unsafe { libc::mincore(base, mapping.len(), resident.as_mut_ptr()) };
        assert_eq!(rc, 0);
        let pages = resident.iter().filter(|&&page| page & 1 == 1).count();
        assert!((1..=16).contains(&pages), "{pages} pages are resident");
    }

    /// Bytes of this mapping that lie in hugepages, as `/proc/self/smaps` shows them.
    pub(crate) fn gathered(base: NonNull<u8>) -> usize {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has this file");
        let start = format!("{:x}-", base.as_ptr().addr());
        let lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
        let kinds = ["AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"];
        lines
            .skip(1)
            .take_while(|line| !line.starts_with("VmFlags"))
            .filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)))
            .filter_map(|size| size.trim().strip_suffix(" kB")?.parse::<usize>().ok())
            .sum::<usize>()
            << 10
    }

    /// Whether the kernel can make hugepages of shared memory, by its version and its settings.
    pub(crate) fn system_collapses() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
        let mut parts = release
            .split(['.', '-'])
            .map_while(|part| part.parse::<u32>().ok());
        let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        version >= (6, 2) && setting.is_ok_and(|setting| !setting.contains("[never]"))
    }

    #[test]
    fn large_memory_is_gathered_in_hugepages_for_peers_too() {
        let len = 3 * HUGEPAGE + 5000;
        let mapping = Mapping::new(len, true, false).expect("6 MiB are available");
        assert_eq!(mapping.base().as_ptr().align_offset(HUGEPAGE), 0);
        mapping.gather(0..2 * HUGEPAGE);
        mapping.gather(2 * HUGEPAGE..len);
        assert!(bytes(&mapping).iter().all(|&byte| byte == 0));
        // SAFETY: our mapping is writable, and this test alone uses it.
        unsafe { mapping.base().as_ptr().add(2 * HUGEPAGE).write(7) };
        let fd = mapping
            .fd()
            .expect("the memory is shared")
            .try_clone_to_owned();
        let peer =
            map_peer(&fd.expect("a descriptor is free"), len).expect("the mapping keeps its pages");
        assert_eq!(peer.base().as_ptr().align_offset(HUGEPAGE), 0);
        // SAFETY: a readable mapping of this length.
        assert_eq!(unsafe { peer.base().add(2 * HUGEPAGE).read() }, 7);
        if system_collapses() {
            let (own, theirs) = (gathered(mapping.base()), gathered(peer.base()));
            // One hugepage of three may be missing where memory is short of them.
            assert!(own >= 2 * HUGEPAGE, "{own} bytes are in hugepages");
            assert!(
                theirs >= HUGEPAGE,
                "{theirs} bytes are in hugepages for the peer"
            );
        }
    }

    #[test]
    fn private_memory_is_gathered_as_it_is_used() {
        let mapping = Mapping::new(2 * HUGEPAGE, false, false).expect("4 MiB are available");
        assert_eq!(mapping.base().as_ptr().align_offset(HUGEPAGE), 0);
        mapping.gather(0..2 * HUGEPAGE);
        // SAFETY: our mapping is writable, and this test alone uses it.
        unsafe { mapping.base().as_ptr().write(7) };
        if system_collapses() {
            assert_eq!(gathered(mapping.base()), HUGEPAGE);
        }
    }

    /// A process has at most 65 530 mappings by default, and far fewer descriptors.
    #[test]
    fn dropped_mappings_are_freed() {
        for _ in 0..70_000 {
            let mapping = Mapping::new(1 << 16, true, false).expect("64 KiB are available");
            let fd = mapping.fd().expect("a descriptor is available").as_raw_fd();
            assert!(fd < 10_000, "descriptors are left open");
        }
    }
}
