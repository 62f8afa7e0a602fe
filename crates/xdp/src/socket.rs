//! An `AF_XDP` socket: opened, given a region and four rings, and bound to a queue of an interface
//! (`Documentation/networking/af_xdp.rst`).
//!
//! Invariant: all that the socket changes in the kernel ends with its descriptor. It is bound in
//! copy mode, which every driver has, with frames of several pieces (`XDP_USE_SG`, Linux 6.6):
//! between neighbours in one kernel, a message that `udp` leaves to be segmented later arrives
//! whole, with up to 64 KB. Called by `open`; its rings go to `receive` and `transmit`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use libc::c_int;

use crate::device::{Device, Kicked, Statistics};
use crate::ffi;
use crate::mapping::Mapping;
use crate::ring::{Consumer, Desc, Entry, Memory, Offsets, Producer};
use crate::umem::{FRAME, Umem};

/// Numbers that `XDP_MMAP_OFFSETS` returns: four for each ring.
const OFFSETS: usize = 16;

/// Number of attempts to get a resource that is busy, and the pause between them: a fifth of a
/// second in all.
const ATTEMPTS: u32 = 40;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);

/// The rings of a socket, from our side.
#[derive(Debug)]
pub struct Rings {
    /// Received packets.
    pub rx: Consumer<Desc>,
    /// Empty frames for them.
    pub fill: Producer<u64>,
    /// Packets to send.
    pub tx: Producer<Desc>,
    /// Frames of packets that have left.
    pub completion: Consumer<u64>,
}

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// The kernel reads and writes it as long as the socket is open.
    _umem: Arc<Umem>,
}

impl Socket {
    /// Opens a socket on queue `queue` of interface `index`, with a ring of each kind that holds
    /// half of the region's frames.
    ///
    /// # Errors
    /// The kernel's, with a sentence that names the failed step and says what would permit it.
    pub fn open(index: u32, queue: u32, umem: Arc<Umem>) -> io::Result<(Self, Rings)> {
        let fd = ffi::socket(libc::AF_XDP, libc::SOCK_RAW, 0).map_err(|error| {
            explain(
                error,
                "the kernel opens no AF_XDP socket; it needs CAP_NET_RAW",
            )
        })?;
        register(fd.as_fd(), &umem)?;
        // A power of two, at most the number of frames that can be in a ring.
        let count = 1 << (umem.frames() / 2).ilog2();
        for name in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            ffi::set_option(fd.as_fd(), libc::SOL_XDP, name, &count)
                .map_err(|error| explain(error, "the kernel refuses a ring"))?;
        }
        let rings = map_rings(fd.as_fd(), count)?;
        bind(fd.as_fd(), index, queue)?;
        Ok((Self { fd, _umem: umem }, rings))
    }
}

impl Device for Socket {
    #[inline]
    fn kick(&self) -> Kicked {
        match ffi::kick(self.fd.as_fd()) {
            Ok(()) => Kicked::Done,
            // The kernel takes a limited number at once; or memory for packets is short.
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
            "a region of {} bytes cannot be pinned: RLIMIT_MEMLOCK is {limit} bytes; raise it \
             (ulimit -l), grant CAP_IPC_LOCK, or ask for a smaller region",
            umem.bytes()
        );
        io::Error::new(io::ErrorKind::OutOfMemory, why)
    })
}

fn map_rings(fd: BorrowedFd<'_>, count: u32) -> io::Result<Rings> {
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
    // 32-bit constants of the kernel's interface, which are offsets here.
    let offset = |number: u64| i64::try_from(number).expect("the offsets have 33 bits");
    let fill = offset(libc::XDP_UMEM_PGOFF_FILL_RING);
    let completion = offset(libc::XDP_UMEM_PGOFF_COMPLETION_RING);
    Ok(Rings {
        rx: Consumer::new(map_ring(fd, at(0), count, libc::XDP_PGOFF_RX_RING)?),
        tx: Producer::new(map_ring(fd, at(1), count, libc::XDP_PGOFF_TX_RING)?),
        fill: Producer::new(map_ring(fd, at(2), count, fill)?),
        completion: Consumer::new(map_ring(fd, at(3), count, completion)?),
    })
}

fn map_ring<E: Entry>(
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

fn bind(fd: BorrowedFd<'_>, index: u32, queue: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: u16::try_from(libc::AF_XDP).expect("a small number"),
        sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG,
        sxdp_ifindex: index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    patiently(|| ffi::bind_xdp(fd, &address)).map_err(|error| {
        let what = match error.raw_os_error() {
            Some(libc::EBUSY) => format!("another AF_XDP socket has queue {queue}"),
            Some(libc::EINVAL) => format!(
                "the interface has no queue {queue}, or the kernel is older than 6.6, which first \
                 passes frames of several pieces"
            ),
            _ => format!("the socket cannot be bound to queue {queue}"),
        };
        explain(error, &what)
    })
}

/// Repeats the attempt for a while if the resource is busy: the kernel frees the queue and the
/// program of a process only some milliseconds after the process has ended.
pub(crate) fn patiently<R>(mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    for _ in 0..ATTEMPTS {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(BETWEEN_ATTEMPTS);
            }
            other => return other,
        }
    }
    attempt()
}

/// The kernel's error with a sentence in front of it.
pub(crate) fn explain(error: io::Error, what: &str) -> io::Error {
    let code: Option<c_int> = error.raw_os_error();
    let kind = match code {
        Some(libc::EBUSY) => io::ErrorKind::ResourceBusy,
        _ => error.kind(),
    };
    io::Error::new(kind, format!("{what}: {error}"))
}
