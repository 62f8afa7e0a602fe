//! `AF_XDP` sockets of a queue (`Documentation/networking/af_xdp.rst`): one that has the region and
//! the rings that all endpoints of the queue share, and one for each endpoint, with two rings of
//! its own.
//!
//! Invariant: all that a socket changes in the kernel ends with its descriptor and with the
//! mappings of its rings. The first socket is bound in copy mode, which every driver has, unless
//! its owner asks for zero-copy mode, and with frames of several pieces (`XDP_USE_SG`, Linux 6.6):
//! between neighbours in one kernel, a message that `udp` leaves to be segmented later arrives
//! whole, with up to 64 KB. The others inherit that. A process without privilege gets bound sockets
//! from a daemon (`setup`), and maps their rings itself. Called by `queue`, `open` and `setup`; the
//! rings go to `receive`, `transmit` and `shared`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::c_int;

use crate::device::{Device, Kicked, Statistics};
use crate::ffi;
use crate::mapping::Mapping;
use crate::refusal;
use crate::ring::{Consumer, Desc, Memory, Offsets, Producer, RingEntry};
use crate::umem::{FRAME, Umem};

/// Numbers that `XDP_MMAP_OFFSETS` returns: four for each ring.
const OFFSETS: usize = 16;

/// Longest time for attempts to get a resource that is busy, and the pause between them.
const BUSY_FOR: Duration = Duration::from_secs(1);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);

/// The rings of an endpoint's socket, from our side.
#[derive(Debug)]
pub struct Rings {
    /// Received packets.
    pub rx: Consumer<Desc>,
    /// Packets to send.
    pub tx: Producer<Desc>,
    /// The memory of the receive ring, which `open` reads once more when the endpoint ends.
    pub(crate) received: Memory<Desc>,
}

/// The rings that the endpoints of a queue share, from our side.
#[derive(Debug)]
pub(crate) struct QueueRings {
    /// Empty frames for received packets.
    pub(crate) fill: Producer<u64>,
    /// Frames of packets that have left.
    pub(crate) completion: Consumer<u64>,
}

/// The socket of a queue, which has its region and receives nothing.
#[derive(Debug)]
pub(crate) struct Host {
    fd: OwnedFd,
    index: u32,
    queue: u32,
    /// The kernel reads and writes it as long as a socket is open.
    umem: Arc<Umem>,
}

/// Makes the socket of queue `queue` of interface `index`, with this region, and binds it. Each of
/// its two rings has room for half of the region's frames.
///
/// # Errors
/// The kernel's, with a sentence that names the failed step and says what would permit it.
pub(crate) fn bound_host(
    index: u32,
    queue: u32,
    umem: &Umem,
    copying: Copying,
) -> io::Result<OwnedFd> {
    let fd = new()?;
    register(fd.as_fd(), umem)?;
    let count = shared_entries(umem.frames());
    for (name, count) in [
        (libc::XDP_UMEM_FILL_RING, count),
        (libc::XDP_UMEM_COMPLETION_RING, count),
        // The kernel binds no socket without a receive or transmit ring.
        (libc::XDP_RX_RING, 1),
    ] {
        make_ring(fd.as_fd(), name, count)?;
    }
    bind(fd.as_fd(), index, queue, Sharing::No(copying))?;
    Ok(fd)
}

/// Entries of each ring that the endpoints of a queue share.
fn shared_entries(frames: u32) -> u32 {
    (frames / 2).next_power_of_two()
}

/// Makes the socket of an endpoint on queue `queue` of interface `index`, whose socket is `host`,
/// and binds it. Its rings have `count` entries, rounded down to a power of two.
///
/// # Errors
/// The kernel's, with a sentence that names the failed step.
pub(crate) fn bound(
    host: BorrowedFd<'_>,
    index: u32,
    queue: u32,
    count: u32,
) -> io::Result<OwnedFd> {
    let fd = new()?;
    for name in [libc::XDP_RX_RING, libc::XDP_TX_RING] {
        make_ring(fd.as_fd(), name, 1 << count.ilog2())?;
    }
    bind(fd.as_fd(), index, queue, Sharing::With(host))?;
    Ok(fd)
}

impl Host {
    /// The socket of queue `queue` of interface `index`, which [`bound_host`] has made with the
    /// frames of `umem`, perhaps in another process.
    ///
    /// # Errors
    /// The kernel's, with a sentence that names the failed step.
    pub(crate) fn of(
        fd: OwnedFd,
        index: u32,
        queue: u32,
        umem: Arc<Umem>,
    ) -> io::Result<(Self, QueueRings)> {
        let count = shared_entries(umem.frames());
        let at = places(fd.as_fd())?;
        // 32-bit constants of the kernel's interface, which are offsets here.
        let offset = |number: u64| i64::try_from(number).expect("the offsets have 33 bits");
        let [fill, completion] = [
            offset(libc::XDP_UMEM_PGOFF_FILL_RING),
            offset(libc::XDP_UMEM_PGOFF_COMPLETION_RING),
        ];
        let rings = QueueRings {
            fill: Producer::new(map_ring(fd.as_fd(), at[2], count, fill)?),
            completion: Consumer::new(map_ring(fd.as_fd(), at[3], count, completion)?),
        };
        let host = Self {
            fd,
            index,
            queue,
            umem,
        };
        Ok((host, rings))
    }

    /// Its descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Asks the kernel to use the frames in the fill ring.
    pub(crate) fn kick_fill(&self) {
        ffi::kick_fill(self.fd.as_fd());
    }
}

/// The socket of an endpoint.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// The kernel reads and writes it as long as the socket is open.
    _umem: Arc<Umem>,
}

impl Socket {
    /// Opens a socket on the queue of `host`. Its rings have `count` entries, rounded down to a
    /// power of two.
    ///
    /// # Errors
    /// The kernel's, with a sentence that names the failed step.
    pub(crate) fn open(host: &Host, count: u32) -> io::Result<(Self, Rings)> {
        let fd = bound(host.fd(), host.index, host.queue, count)?;
        Self::of(fd, host, count)
    }

    /// A socket on the queue of `host` that [`bound`] has made with `count` entries, perhaps in
    /// another process.
    ///
    /// # Errors
    /// The kernel's, with a sentence that names the failed step.
    pub(crate) fn of(fd: OwnedFd, host: &Host, count: u32) -> io::Result<(Self, Rings)> {
        let count = 1 << count.ilog2();
        let at = places(fd.as_fd())?;
        let received = map_ring(fd.as_fd(), at[0], count, libc::XDP_PGOFF_RX_RING)?;
        let rings = Rings {
            rx: Consumer::new(received.clone()),
            tx: Producer::new(map_ring(fd.as_fd(), at[1], count, libc::XDP_PGOFF_TX_RING)?),
            received,
        };
        let umem = host.umem.clone();
        Ok((Self { fd, _umem: umem }, rings))
    }
}

fn new() -> io::Result<OwnedFd> {
    ffi::socket(libc::AF_XDP, libc::SOCK_RAW, 0).map_err(|error| {
        let why = refusal::of_socket(error.raw_os_error());
        explain(error, why)
    })
}

fn make_ring(fd: BorrowedFd<'_>, name: c_int, count: u32) -> io::Result<()> {
    ffi::set_option(fd, libc::SOL_XDP, name, &count)
        .map_err(|error| explain(error, "the kernel refuses a ring"))
}

impl Device for Socket {
    #[inline]
    fn kick(&self) -> Kicked {
        match ffi::kick(self.fd.as_fd()) {
            Ok(()) => Kicked::Done,
            // The kernel takes a limited number of packets at once, or lacks memory for them.
            Err(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => {
                Kicked::Again
            }
            Err(_) => Kicked::Down,
        }
    }

    fn kick_fill(&self) {
        ffi::kick_fill(self.fd.as_fd());
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn statistics(&self) -> Statistics {
        let numbers = ffi::numbers::<6>(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS);
        let [dropped, rx_invalid, tx_invalid, full, unfilled, _] = numbers.unwrap_or_default();
        Statistics {
            rx_dropped: dropped + full,
            rx_unfilled: unfilled,
            rx_invalid,
            tx_invalid,
        }
    }

    fn take_error(&self) -> bool {
        ffi::take_error(self.fd.as_fd()).is_some()
    }
}

/// Registers the region, whose pages the kernel pins.
fn register(fd: BorrowedFd<'_>, umem: &Umem) -> io::Result<()> {
    let region = libc::xdp_umem_reg {
        addr: umem.base() as u64,
        len: umem.bytes() as u64,
        chunk_size: u32::try_from(FRAME).expect("4096"),
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    ffi::set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region).map_err(|error| {
        if error.raw_os_error() != Some(libc::ENOBUFS) {
            return explain(error, "the kernel refuses the region of frames");
        }
        let limit = ffi::memlock().map_or("?".to_owned(), |limit| limit.to_string());
        let why = format!(
            "a region of {} bytes cannot be pinned: RLIMIT_MEMLOCK is {limit} bytes for all \
             processes of the user, which may have pinned some of them already; raise it (ulimit \
             -l), grant CAP_IPC_LOCK, or let the queue have fewer endpoints (xdp.endpoints)",
            umem.bytes()
        );
        io::Error::new(io::ErrorKind::OutOfMemory, why)
    })
}

/// Where the parts of the four rings lie. The rings are, in this order: received packets, packets
/// to send, empty frames, completed frames.
fn places(fd: BorrowedFd<'_>) -> io::Result<[Option<Offsets>; 4]> {
    let numbers = ffi::numbers::<OFFSETS>(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
        .map_err(|error| explain(error, "the kernel does not say where its rings lie"))?;
    let at = |ring: usize| -> Option<Offsets> {
        let number = |field: usize| usize::try_from(numbers[4 * ring + field]).ok();
        Some(Offsets {
            producer: number(0)?,
            consumer: number(1)?,
            entries: number(2)?,
            flags: number(3)?,
        })
    };
    Ok([at(0), at(1), at(2), at(3)])
}

fn map_ring<E: RingEntry>(
    fd: BorrowedFd<'_>,
    at: Option<Offsets>,
    count: u32,
    offset: i64,
) -> io::Result<Memory<E>> {
    let strange = || io::Error::other("the kernel describes a ring that has no place in memory");
    let at = at.ok_or_else(strange)?;
    let mapping = Mapping::shared(fd, at.mapping_len::<E>(count), offset)
        .map_err(|error| explain(error, "a ring cannot be mapped"))?;
    Memory::of(Arc::new(mapping), &at, count).ok_or_else(strange)
}

/// Whether packets are copied between the driver's memory and the region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copying {
    /// All are, which every driver can do.
    Frames,
    /// None is: the driver uses the frames where they lie (`XDP_ZEROCOPY`).
    Nothing,
}

/// The owner of the region and of the shared rings of a socket.
#[derive(Clone, Copy, Debug)]
enum Sharing<'a> {
    /// The socket itself.
    No(Copying),
    /// This socket of the same queue, from which all flags are inherited.
    With(BorrowedFd<'a>),
}

/// Binds a socket to a queue.
fn bind(fd: BorrowedFd<'_>, index: u32, queue: u32, sharing: Sharing<'_>) -> io::Result<()> {
    let own = libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG;
    let (flags, host) = match sharing {
        Sharing::No(Copying::Frames) => (libc::XDP_COPY | own, 0),
        Sharing::No(Copying::Nothing) => (libc::XDP_ZEROCOPY | own, 0),
        Sharing::With(host) => (libc::XDP_SHARED_UMEM, host.as_raw_fd()),
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).expect("a small number"),
        sxdp_flags: flags,
        sxdp_ifindex: index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: host.cast_unsigned(),
    };
    patiently(|| ffi::bind_xdp(fd, &address)).map_err(|error| {
        let what = match error.raw_os_error() {
            Some(libc::EBUSY) => format!(
                "an AF_XDP socket of another process has queue {queue}, and the kernel gives a \
                 queue only one region of frames; take another queue (xdp.queue), or give the \
                 process an interface and a network namespace of its own (ip link add link \
                 INTERFACE name NAME netns NAMESPACE type macvlan mode bridge)"
            ),
            Some(libc::EINVAL) => format!(
                "the interface has no queue {queue}, or the kernel is older than 6.6, which first \
                 passes frames of several pieces"
            ),
            Some(libc::EOPNOTSUPP) if flags & libc::XDP_ZEROCOPY != 0 => {
                "the driver has no zero-copy mode with frames of several pieces (xdp.zero_copy)"
                    .to_owned()
            }
            _ => format!("the socket cannot be bound to queue {queue}"),
        };
        explain(error, &what)
    })
}

/// Repeats the attempt for a while if the resource is busy: the kernel frees the queue and the
/// program of a process only some milliseconds after the process has ended.
pub(crate) fn patiently<R>(mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    let begin = Instant::now();
    loop {
        match attempt() {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && begin.elapsed() < BUSY_FOR =>
            {
                std::thread::sleep(BETWEEN_ATTEMPTS);
            }
            other => return other,
        }
    }
}

/// The kernel's error with a sentence in front of it.
pub(crate) fn explain(error: io::Error, what: &str) -> io::Error {
    let code: Option<c_int> = error.raw_os_error();
    let kind = match code {
        // The second is the answer if an interface has a program in the other mode.
        Some(libc::EBUSY | libc::EEXIST) => io::ErrorKind::ResourceBusy,
        _ => error.kind(),
    };
    io::Error::new(kind, format!("{what}: {error}"))
}
