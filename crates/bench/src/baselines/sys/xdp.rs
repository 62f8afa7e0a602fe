//! A bare AF_XDP socket: a region of frames, four rings, and a program that takes all packets of
//! the interface (`Documentation/networking/af_xdp.rst`, `bpf(2)`).
//!
//! The first half of the frames is for receiving, the second half for sending. Each packet to send
//! takes the next group of consecutive frames, in rotation. The kernel never has more frames than
//! there are groups, so the next group is free. Closing the descriptors releases everything. Called
//! by the baselines over AF_XDP.

mod ring;

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::time::Duration;

use super::checked;
use ring::Ring;

/// Bytes of a frame, the most that the kernel allows.
const FRAME: usize = 4096;
/// Entries of each ring, and frames of each half.
const SLOTS: u32 = 2048;
/// Bytes of the region.
const REGION: usize = 2 * SLOTS as usize * FRAME;
/// The most system calls of one kick. Packets that are left wait for the next kick.
const KICKS: u32 = 64;

/// Attempts to get a queue that is busy.
const ATTEMPTS: u32 = 200;

/// Where the kernel maps the rings (`if_xdp.h`).
const RX: i64 = 0;
const TX: i64 = 0x8000_0000;
const FILL: i64 = 0x1_0000_0000;
const COMPLETION: i64 = 0x1_8000_0000;

/// An open socket at queue 0 of an interface.
#[derive(Debug)]
pub(crate) struct Port {
    fd: OwnedFd,
    /// Keeps the program attached: the link holds the program, and the program holds its map.
    _link: OwnedFd,
    region: *mut u8,
    rx: Ring<libc::xdp_desc>,
    tx: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    /// A group has `pieces` frames, enough for one packet. The sending half has `groups` groups.
    pieces: u32,
    groups: u32,
    next: u32,
    /// Sending frames that the kernel has.
    lent: u32,
}

impl Port {
    /// Opens a socket for packets of up to `longest` bytes.
    ///
    /// # Errors
    /// The kernel refuses a step, for example because the process lacks `CAP_NET_ADMIN`.
    pub(crate) fn open(interface: &str, native: bool, longest: usize) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: the name ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes numbers only.
        let fd = owned(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
        let region = map(-1, REGION, 0)?;
        register(&fd, region)?;
        let at = offsets(&fd)?;
        let pieces = longest.div_ceil(FRAME).max(1);
        let pieces = u32::try_from(pieces).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut port = Self {
            rx: Ring::map(&fd, RX, &at.rx, SLOTS)?,
            tx: Ring::map(&fd, TX, &at.tx, SLOTS)?,
            fill: Ring::map(&fd, FILL, &at.fr, SLOTS)?,
            completion: Ring::map(&fd, COMPLETION, &at.cr, SLOTS)?,
            _link: bind_and_steer(&fd, index, native)?,
            fd,
            region,
            pieces,
            groups: SLOTS / pieces,
            next: 0,
            lent: 0,
        };
        for frame in 0..SLOTS {
            port.fill.push(u64::from(frame) * FRAME as u64);
        }
        port.fill.publish();
        Ok(port)
    }

    /// Shows up to `most` pieces of received packets to `take`, whose second argument is true if
    /// the packet ends with this piece. Returns the number of pieces.
    #[inline]
    pub(crate) fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8], bool)) -> u32 {
        let count = self.rx.available().min(most);
        for _ in 0..count {
            let desc = self.rx.pop();
            let at = usize::try_from(desc.addr).unwrap_or(usize::MAX);
            let len = desc.len as usize;
            assert!(at / FRAME < SLOTS as usize && at % FRAME + len <= FRAME);
            // SAFETY: the piece lies in a frame of the receiving half, as was just checked, and the
            // kernel does not write to the frame before it gets it back below.
            take(
                unsafe { std::slice::from_raw_parts(self.region.add(at), len) },
                desc.options & 1 == 0,
            );
            self.fill.push(desc.addr - desc.addr % FRAME as u64);
        }
        if count > 0 {
            self.rx.release();
            self.fill.publish();
            if self.fill.wants_wakeup() {
                let fd = self.fd.as_raw_fd();
                // SAFETY: no bytes and no address. The result does not matter.
                unsafe { libc::recvfrom(fd, null_mut(), 0, DONT_WAIT, null_mut(), null_mut()) };
            }
        }
        count
    }

    /// Writes a packet of `len` bytes, which leaves with the next [`Self::kick`]. False if too few
    /// frames are free.
    #[inline]
    pub(crate) fn push(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> bool {
        self.reclaim();
        if self.lent + self.pieces > self.groups {
            return false;
        }
        let first = (SLOTS + self.next * self.pieces) as usize * FRAME;
        self.next = (self.next + 1) % self.groups;
        assert!(len <= self.pieces as usize * FRAME);
        // SAFETY: these frames are in the sending half. Groups are pushed in rotation, and the
        // kernel returns frames in that order. It has fewer frames than there are groups, so this
        // group, the oldest one, has come back.
        write(unsafe { std::slice::from_raw_parts_mut(self.region.add(first), len) });
        for at in (0..len).step_by(FRAME) {
            let rest = len - at;
            self.tx.push(libc::xdp_desc {
                addr: (first + at) as u64,
                len: u32::try_from(rest.min(FRAME)).unwrap_or(u32::MAX),
                options: u32::from(rest > FRAME),
            });
            self.lent += 1;
        }
        true
    }

    /// Makes the kernel send.
    #[inline]
    pub(crate) fn kick(&mut self) {
        self.tx.publish();
        for _ in 0..KICKS {
            let fd = self.fd.as_raw_fd();
            // SAFETY: no bytes and no address.
            let sent = unsafe { libc::sendto(fd, null_mut(), 0, DONT_WAIT, null_mut(), 0) };
            // The kernel takes a limited number of packets in one call. If more are left, the call
            // fails, and the loop repeats it.
            if sent >= 0 || self.tx.is_empty() {
                return;
            }
            self.reclaim();
        }
    }

    /// Sleeps until a packet waits.
    ///
    /// # Errors
    /// `poll(2)` fails.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one live entry.
        checked(unsafe { libc::poll(&raw mut poll, 1, -1) })?;
        Ok(())
    }

    #[inline]
    fn reclaim(&mut self) {
        let back = self.completion.available();
        if back > 0 {
            self.completion.skip(back);
            self.lent = self.lent.saturating_sub(back);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: `open` made this mapping, and no reference into it is left.
        unsafe { libc::munmap(self.region.cast(), REGION) };
    }
}

const DONT_WAIT: libc::c_int = libc::MSG_DONTWAIT;

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(checked(fd)?) })
}

/// Maps `len` bytes of a descriptor, shared; for -1, maps new memory.
fn map(fd: libc::c_int, len: usize, offset: i64) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = match fd {
        -1 => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        _ => libc::MAP_SHARED | libc::MAP_POPULATE,
    };
    // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
    let base = unsafe { libc::mmap(null_mut(), len, access, flags, fd, offset) };
    match base == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(base.cast()),
    }
}

fn set<T>(fd: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<T>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let at = (&raw const *value).cast();
    // SAFETY: the value is live, and its size is given.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, at, len) })?;
    Ok(())
}

fn register(fd: &OwnedFd, region: *mut u8) -> io::Result<()> {
    // SAFETY: all zero is a valid description, without flags.
    let mut umem: libc::xdp_umem_reg = unsafe { zeroed() };
    umem.addr = region as u64;
    umem.len = REGION as u64;
    umem.chunk_size = u32::try_from(FRAME).map_err(|_| io::ErrorKind::InvalidInput)?;
    set(fd, libc::XDP_UMEM_REG, &umem)?;
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ] {
        set(fd, ring, &SLOTS)?;
    }
    Ok(())
}

fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all zero is valid: the fields are numbers.
    let mut at: libc::xdp_mmap_offsets = unsafe { zeroed() };
    let mut len = libc::socklen_t::try_from(size_of_val(&at)).unwrap_or(0);
    let (name, to) = (libc::XDP_MMAP_OFFSETS, (&raw mut at).cast());
    // SAFETY: the kernel writes at most `len` bytes into the live value.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, to, &raw mut len) })?;
    Ok(at)
}

/// Binds the socket in copy mode, as the transport does, and attaches the program. Returns the
/// link.
fn bind_and_steer(fd: &OwnedFd, index: u32, native: bool) -> io::Result<OwnedFd> {
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).map_err(|_| io::ErrorKind::InvalidInput)?,
        sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    let len = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or(0);
    // SAFETY: the address is live, and its size is given.
    let bind = || checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) });
    patiently(bind)?;
    // A map of sockets (17) with one entry.
    let map = bpf(0, &mut [pair(17, 4), pair(4, 1), 0, 0, 0, 0, 0, 0])?;
    let (key, value) = (0_u32, fd.as_raw_fd());
    let at = [(&raw const key) as u64, (&raw const value) as u64];
    bpf_done(2, &mut [pair(number(&map), 0), at[0], at[1], 0])?;
    let program = load(&map)?;
    let flags = if native { 4 } else { 2 };
    // A link (37: XDP) of the program with the interface.
    let link = [pair(number(&program), index), pair(37, flags), 0, 0, 0, 0];
    patiently(|| bpf(28, &mut link.clone()))
}

/// Repeats the attempt for up to a second: the kernel frees the queue of a killed process only some
/// time after the process has ended.
fn patiently<R>(mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    for _ in 0..ATTEMPTS {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
    attempt()
}

/// Loads a program that returns `redirect_map(map, 0, XDP_PASS)`.
fn load(map: &OwnedFd) -> io::Result<OwnedFd> {
    let with = |code: u64, register: u64, value: u32| u64::from(value) << 32 | register << 8 | code;
    let code = [
        with(0x18, 0x11, number(map)),
        0,
        with(0xB7, 2, 0),
        with(0xB7, 3, 2),
        with(0x85, 0, 51),
        with(0x95, 0, 0),
    ];
    let licence = c"Dual MIT/GPL";
    // Kind 6 is XDP; the flag permits packets of several pieces.
    let mut attributes = [0; 16];
    attributes[0] = pair(6, 6);
    attributes[1] = code.as_ptr() as u64;
    attributes[2] = licence.as_ptr() as u64;
    attributes[5] = pair(0, 1 << 5);
    bpf(5, &mut attributes)
}

/// bpf(2) with a command that returns a descriptor.
fn bpf(command: libc::c_int, attributes: &mut [u64]) -> io::Result<OwnedFd> {
    // SAFETY: the commands above return a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(bpf_done(command, attributes)?) })
}

fn bpf_done(command: libc::c_int, attributes: &mut [u64]) -> io::Result<libc::c_int> {
    let (at, len) = (attributes.as_mut_ptr(), size_of_val(attributes));
    // SAFETY: the attributes are live, and the callers keep alive the memory to which they point.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, at, len) };
    checked(libc::c_int::try_from(result).unwrap_or(-1))
}

fn number(fd: &OwnedFd) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// Two 32-bit attributes.
fn pair(first: u32, second: u32) -> u64 {
    u64::from(second) << 32 | u64::from(first)
}
