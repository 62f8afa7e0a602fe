//! A network in user space for any number of endpoints, without a device or privileges: a kick of
//! an endpoint carries its frames to the endpoints that they address. Tests run the transport over
//! it.
//!
//! Invariant: an endpoint is in the network as long as one of its halves lives. A frame for another
//! address, or for an endpoint without an empty frame or a place in its ring, is lost.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Both, Side};
use crate::device::{Device, Kicked, Statistics};
use crate::ffi;
use crate::ring::Desc;
use dunlin_packet::{ETHERNET, IPV4};

/// The place of the destination address in a frame.
const DESTINATION: usize = ETHERNET + IPV4 - 4;

/// The kernel's ends of all endpoints.
static SIDES: Mutex<BTreeMap<Ipv4Addr, Side>> = Mutex::new(BTreeMap::new());

fn sides() -> MutexGuard<'static, BTreeMap<Ipv4Addr, Side>> {
    SIDES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of one endpoint.
#[derive(Debug)]
struct Port {
    ip: Ipv4Addr,
    bell: Arc<Bell>,
}

/// The descriptor of an endpoint, and the packets that it lost.
#[derive(Debug)]
pub(super) struct Bell {
    event: File,
    dropped: AtomicU64,
}

/// Opens an endpoint in the network of this process.
///
/// # Errors
/// The kernel's, for a socket of loopback and for memory.
///
/// ```
/// let (one, two) = (dunlin_xdp::wire::open()?, dunlin_xdp::wire::open()?);
/// assert_ne!(one.rx.local_addr().ip(), two.rx.local_addr().ip());
/// # std::io::Result::Ok(())
/// ```
pub fn open() -> io::Result<Both> {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = number.to_be_bytes();
    let ip = Ipv4Addr::new(10, 0, high, low);
    let bell = Arc::new(Bell {
        event: File::from(ffi::event()?),
        dropped: AtomicU64::new(0),
    });
    let port = Port {
        ip,
        bell: bell.clone(),
    };
    let (halves, mut side) = Side::open(ip, true, Arc::new(port))?;
    side.bell = Some(bell);
    sides().insert(ip, side);
    Ok(halves)
}

impl Device for Port {
    fn kick(&self) -> Kicked {
        let mut sides = sides();
        let Some(own) = sides.get_mut(&self.ip) else {
            return Kicked::Down;
        };
        for frame in own.sent() {
            let to: Option<&[u8; 4]> = frame[DESTINATION..].first_chunk();
            let to = to.and_then(|to| sides.get_mut(&Ipv4Addr::from(*to)));
            if let Some(to) = to {
                to.take(&frame);
            }
        }
        Kicked::Done
    }

    fn kick_fill(&self) {}

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.event.as_fd())
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            rx_dropped: self.bell.dropped.load(Ordering::Relaxed),
            ..Statistics::default()
        }
    }

    /// An endpoint that is going to sleep calls this, and then looks at its ring. So earlier
    /// packets must not keep the descriptor readable.
    fn take_error(&self) -> bool {
        ffi::clear(self.bell.event.as_fd());
        false
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        sides().remove(&self.ip);
    }
}

impl Side {
    /// The frames that the endpoint has sent, each of which is complete now.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.tx.available(u32::MAX);
        while let Some(desc) = self.tx.pop() {
            assert!(!desc.continues(), "a frame has one piece");
            frames.push(self.umem.copy_out(desc.addr, desc.len));
            let has_room = self.completion.push(desc.addr);
            assert!(has_room, "there is room for all frames");
        }
        self.tx.release();
        self.completion.publish();
        frames
    }

    /// Receives a frame, or loses it.
    fn take(&mut self, frame: &[u8]) {
        let bell = self.bell.as_ref().expect("it is in the network");
        if self.fill.available(1) == 0 || self.rx.room(1) == 0 {
            bell.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let empty = self.fill.pop().expect("there is an empty frame");
        let addr = empty + super::HEADROOM;
        self.umem.copy_in(addr, frame);
        let len = u32::try_from(frame.len()).expect("it fits a frame");
        let has_place = self.rx.push(Desc {
            addr,
            len,
            options: 0,
        });
        assert!(has_place, "there is room");
        self.fill.release();
        self.rx.publish();
        ffi::ring(bell.event.as_fd());
    }
}
