//! Gets memory from the operating system, and does nothing else: `memfd_create` and `mmap`, with
//! hugepages if there are any, otherwise ordinary pages, otherwise anonymous memory (design §8). On
//! systems other than Linux, and under Miri, it takes zeroed memory from the allocator.
//!
//! A [`Mapping`] is zeroed, page-aligned and at least as long as asked. The kernel provides each
//! page when it is first touched. A [`PeerMapping`] is memory of another process, for reading.
//! A mapping of either kind that is at least a hugepage long begins at a multiple of a hugepage,
//! so that the kernel can map hugepages there ([`Mapping::gather`]). Called by `region` and `peer`.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::errors::MapError;

/// Bytes of a hugepage; this crate asks for no other kind.
pub(crate) const HUGEPAGE: usize = 2 << 20;

/// Bytes of an ordinary page.
pub(crate) const PAGE: usize = 4096;

/// The kind of pages of a region's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Backing {
    /// Shared memory in hugepages of 2 MiB.
    Hugepages,
    /// Shared memory in ordinary pages.
    Pages,
    /// Memory that only this process maps, without a file descriptor.
    Private,
    /// Memory that the user provided.
    User,
}

/// Memory that is unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    fd: Option<OwnedFd>,
    backing: Backing,
}

// SAFETY: a mapping is memory and a descriptor; neither is tied to a thread. All access to the
// memory goes through raw pointers, whose users must keep it sound.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared `Mapping` gives out nothing but its address and descriptor.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `len` bytes; `len` must not be zero. `None` if the system refuses. `shared`
    /// asks for memory that other processes can map; if the system has none, the memory is private.
    pub(crate) fn new(len: usize, shared: bool, hugepages: bool) -> Option<Self> {
        debug_assert!(len > 0);
        os::map(len, shared, hugepages)
    }

    /// Makes private memory `len` bytes long; `len` must be a multiple of a page. Contents that fit
    /// are kept; their address may change. `None` if the system refuses; the memory is then freed.
    pub(crate) fn resized(self, len: usize) -> Option<Self> {
        debug_assert!(self.backing == Backing::Private && len > 0 && len.is_multiple_of(PAGE));
        os::resize(self, len)
    }

    /// Asks the kernel to put these bytes into hugepages, even if the system has set none aside.
    /// Without hugepages, the memory works, but its first use costs a fault for each page of 4 KiB:
    /// 7.7 ms instead of 0.5 ms for 8 MiB, measured on Linux 6.18. `bytes` begins at a multiple of
    /// a hugepage.
    pub(crate) fn gather(&self, bytes: Range<usize>) {
        debug_assert!(bytes.end <= self.len && bytes.start.is_multiple_of(HUGEPAGE));
        os::gather(self, bytes);
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn backing(&self) -> Backing {
        self.backing
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping, which nothing uses any more: a
        // region is dropped only when no msgbuf of it is left.
        unsafe { os::unmap(self.base, self.len) };
    }
}

/// Memory of another process, mapped for reading and unmapped on drop.
#[derive(Debug)]
pub(crate) struct PeerMapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: as for `Mapping`.
unsafe impl Send for PeerMapping {}
// SAFETY: as for `Mapping`.
unsafe impl Sync for PeerMapping {}

impl PeerMapping {
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for PeerMapping {
    fn drop(&mut self) {
        // SAFETY: base and length are those of the mapping; bytes that were found in it borrow from
        // it.
        unsafe { os::unmap_peer(self.base, self.len) };
    }
}

/// Maps `len` bytes that another process has shared.
pub(crate) fn map_peer(fd: &OwnedFd, len: usize) -> Result<PeerMapping, MapError> {
    os::map_peer(fd, len)
}

/// NUMA node of the calling thread: the first touch of a page takes memory from that node.
pub(crate) fn current_node() -> Option<u32> {
    os::current_node()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod os {
    use super::{Backing, HUGEPAGE, MapError, Mapping, PAGE, PeerMapping};
    use std::ffi::c_int;
    use std::mem::MaybeUninit;
    use std::ops::Range;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// `MADV_COLLAPSE` of Linux 6.1, which libc does not name.
    const COLLAPSE: c_int = 25;

    pub(super) fn map(len: usize, shared: bool, hugepages: bool) -> Option<Mapping> {
        if !shared {
            return map_with(len, None, Backing::Private);
        }
        // A mapping that is small compared with one hugepage would waste most of it.
        let huge = if hugepages && len >= HUGEPAGE / 2 {
            let huge_len = len.next_multiple_of(HUGEPAGE);
            memfd(huge_len, libc::MFD_HUGETLB | libc::MFD_HUGE_2MB)
                .and_then(|fd| map_with(huge_len, Some(fd), Backing::Hugepages))
        } else {
            None
        };
        huge.or_else(|| memfd(len, 0).and_then(|fd| map_with(len, Some(fd), Backing::Pages)))
            .or_else(|| map_with(len, None, Backing::Private))
    }

    pub(super) fn resize(mut mapping: Mapping, len: usize) -> Option<Mapping> {
        let before = mapping.len.next_multiple_of(PAGE);
        let (base, move_it) = (mapping.base.as_ptr().cast(), libc::MREMAP_MAYMOVE);
        // SAFETY: the whole of a mapping that we own; its owner finds the memory at its new place.
        let base = unsafe { libc::mremap(base, before, len, move_it) };
        if base == libc::MAP_FAILED {
            return None;
        }
        mapping.base = NonNull::new(base.cast())?;
        mapping.len = len;
        Some(mapping)
    }

    fn memfd(len: usize, flags: libc::c_uint) -> Option<OwnedFd> {
        let flags = flags | libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string; the call touches no other memory of ours.
        let fd = unsafe { libc::memfd_create(c"dunlin".as_ptr(), flags) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let len = libc::off_t::try_from(len).ok()?;
        // SAFETY: a plain system call on a descriptor that we own.
        (unsafe { libc::ftruncate(fd.as_raw_fd(), len) } == 0).then_some(fd)
    }

    fn map_with(len: usize, fd: Option<OwnedFd>, backing: Backing) -> Option<Mapping> {
        let (flags, raw) = match &fd {
            Some(fd) => (libc::MAP_SHARED, fd.as_raw_fd()),
            None => (
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
            ),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let base = match backing {
            // The kernel aligns hugepages by itself, and refuses to unmap a part of one.
            Backing::Hugepages => map_anywhere(len, access, flags, raw),
            _ => map_aligned(len, access, flags, raw),
        }?;
        if let Some(fd) = &fd {
            seal(fd);
            // A forked child is another process, and would share the memory: it could change a
            // request while a handler of its parent reads it. If a kernel refuses this, the memory
            // still works.
            // SAFETY: the whole of the new mapping.
            unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_DONTFORK) };
        }
        Some(Mapping {
            base,
            len,
            fd,
            backing,
        })
    }

    fn map_anywhere(len: usize, access: c_int, flags: c_int, fd: c_int) -> Option<NonNull<u8>> {
        // SAFETY: a new mapping at an address of the kernel's choice, which replaces none of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, 0) };
        (base != libc::MAP_FAILED).then(|| NonNull::new(base.cast()))?
    }

    /// Like [`map_anywhere`], but a mapping that can hold a hugepage begins at a multiple of one.
    fn map_aligned(len: usize, access: c_int, flags: c_int, fd: c_int) -> Option<NonNull<u8>> {
        if len < HUGEPAGE {
            return map_anywhere(len, access, flags, fd);
        }
        let reserved = len.checked_add(HUGEPAGE)?.checked_next_multiple_of(PAGE)?;
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = map_anywhere(reserved, libc::PROT_NONE, nothing, -1)?;
        let before = whole.as_ptr().align_offset(HUGEPAGE);
        let used = len.next_multiple_of(PAGE);
        // SAFETY: the aligned address is less than a hugepage beyond the start, so the mapping and
        // the parts cut off on both sides lie in the reservation, which is ours.
        unsafe {
            let base = whole.add(before);
            let at = base.as_ptr().cast();
            let mapped = libc::mmap(at, len, access, flags | libc::MAP_FIXED, fd, 0);
            if mapped == libc::MAP_FAILED {
                unmap(whole, reserved);
                return None;
            }
            if before > 0 {
                unmap(whole, before);
            }
            unmap(base.add(used), reserved - before - used);
            Some(base)
        }
    }

    /// Set once the kernel has answered that it cannot make hugepages of shared memory at all.
    static CANNOT_COLLAPSE: AtomicBool = AtomicBool::new(false);

    pub(super) fn gather(mapping: &Mapping, bytes: Range<usize>) {
        let whole = bytes.len() / HUGEPAGE * HUGEPAGE;
        if whole == 0 {
            return;
        }
        // SAFETY: the range lies in the mapping.
        let base = unsafe { mapping.base.add(bytes.start) }.as_ptr();
        match mapping.backing {
            Backing::Private => {
                // SAFETY: the range lies in the mapping, which begins at a page.
                unsafe { libc::madvise(base.cast(), whole, libc::MADV_HUGEPAGE) };
            }
            Backing::Pages if !CANNOT_COLLAPSE.load(Ordering::Relaxed) => {
                // The kernel collapses a range only if a page is present in it.
                for place in (0..whole).step_by(HUGEPAGE) {
                    // SAFETY: inside the mapping, all of whose bytes are initialised.
                    unsafe { base.add(place).read_volatile() };
                }
                // SAFETY: as above. The contents of the memory stay as they are.
                let rc = unsafe { libc::madvise(base.cast(), whole, COLLAPSE) };
                let refused =
                    rc != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
                CANNOT_COLLAPSE.store(refused, Ordering::Relaxed);
            }
            Backing::Pages | Backing::Hugepages | Backing::User => {}
        }
    }

    /// Seals the file. A process that receives the descriptor can then neither shrink the mapped
    /// file nor write to it, and can check that we cannot shrink it either. If a kernel refuses a
    /// seal, the memory still works.
    fn seal(fd: &OwnedFd) {
        let size: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        for seals in [size, libc::F_SEAL_FUTURE_WRITE, libc::F_SEAL_SEAL] {
            // SAFETY: a plain system call on a descriptor that we own.
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) };
        }
    }

    /// # Safety
    /// `base` and `len` are those of a mapping of [`map`] that nothing uses any more.
    pub(super) unsafe fn unmap(base: NonNull<u8>, len: usize) {
        // SAFETY: promised by the caller. `munmap` fails only for arguments that are not a mapping.
        let rc = unsafe { libc::munmap(base.as_ptr().cast(), len) };
        debug_assert_eq!(rc, 0, "the mapping cannot be unmapped");
    }

    pub(super) fn map_peer(fd: &OwnedFd, len: usize) -> Result<PeerMapping, MapError> {
        if len == 0 || !keeps_its_pages(fd, len) {
            return Err(MapError::Descriptor);
        }
        let (access, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        let base = match system_of(fd) {
            Some(libc::HUGETLBFS_MAGIC) => map_anywhere(len, access, flags, fd.as_raw_fd()),
            _ => map_aligned(len, access, flags, fd.as_raw_fd()),
        };
        let base = base.ok_or(MapError::System)?;
        Ok(PeerMapping { base, len })
    }

    /// True if this is memory of `len` bytes, and no mapping of it can ever lose a page; access to
    /// a lost page would be a bus error. The kernel makes ordinary pages when they are touched. It
    /// reserves hugepages at the time of mapping, and they stay if no process can punch holes.
    fn keeps_its_pages(fd: &OwnedFd, len: usize) -> bool {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the kernel fills the structure.
        if unsafe { libc::fstat(fd.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call has filled it.
        let stat = unsafe { stat.assume_init() };
        // SAFETY: plain integers. Only memory files have seals.
        let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
        let needed = match system_of(fd) {
            Some(libc::TMPFS_MAGIC) => libc::F_SEAL_SHRINK,
            Some(libc::HUGETLBFS_MAGIC) => libc::F_SEAL_SHRINK | libc::F_SEAL_FUTURE_WRITE,
            _ => return false,
        };
        seals >= 0
            && seals & needed == needed
            && u64::try_from(stat.st_size).is_ok_and(|size| size == len as u64)
    }

    /// The kind of file system that holds a file. The block size does not show the kind: a tmpfs
    /// that may use huge pages has the block size of hugetlbfs.
    fn system_of(fd: &OwnedFd) -> Option<libc::__fsword_t> {
        let mut system = MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the kernel fills the structure.
        if unsafe { libc::fstatfs(fd.as_raw_fd(), system.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the call has filled it.
        Some(unsafe { system.assume_init() }.f_type)
    }

    /// # Safety
    /// `base` and `len` are those of a mapping of [`map_peer`] that nothing uses any more.
    pub(super) unsafe fn unmap_peer(base: NonNull<u8>, len: usize) {
        // SAFETY: promised by the caller.
        unsafe { unmap(base, len) };
    }

    pub(super) fn current_node() -> Option<u32> {
        let (mut cpu, mut node) = (0, 0);
        // SAFETY: both pointers are to integers of the kernel's type that outlive the call.
        let rc = unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, 0_usize) };
        let _: u32 = cpu;
        (rc == 0).then_some(node)
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod os {
    use super::{Backing, MapError, Mapping, PeerMapping};
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::os::fd::OwnedFd;
    use std::ptr::NonNull;

    pub(super) fn gather(_mapping: &Mapping, _bytes: std::ops::Range<usize>) {}

    pub(super) fn map_peer(_fd: &OwnedFd, _len: usize) -> Result<PeerMapping, MapError> {
        Err(MapError::System)
    }

    /// # Safety
    /// Never called, because no memory is mapped here.
    pub(super) unsafe fn unmap_peer(_base: NonNull<u8>, _len: usize) {}

    pub(super) fn map(len: usize, _shared: bool, _hugepages: bool) -> Option<Mapping> {
        let layout = Layout::from_size_align(len, super::PAGE).ok()?;
        // SAFETY: the length is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Mapping {
            base,
            len,
            fd: None,
            backing: Backing::Private,
        })
    }

    pub(super) fn resize(mapping: Mapping, len: usize) -> Option<Mapping> {
        let other = map(len, false, false)?;
        let (from, to) = (mapping.base.as_ptr(), other.base.as_ptr());
        // SAFETY: both have at least this length, and they are different allocations.
        unsafe { to.copy_from_nonoverlapping(from, len.min(mapping.len)) };
        Some(other)
    }

    /// # Safety
    /// `base` and `len` are those of a mapping of [`map`] that nothing uses any more.
    pub(super) unsafe fn unmap(base: NonNull<u8>, len: usize) {
        let layout = Layout::from_size_align(len, super::PAGE)
            .expect("the layout was valid when it was allocated");
        // SAFETY: promised by the caller; the layout is the one it was allocated with.
        unsafe { dealloc(base.as_ptr(), layout) };
    }

    pub(super) fn current_node() -> Option<u32> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests;
