//! A queue of an interface, and the interface itself, as the endpoints of this process share them.
//!
//! A queue has one region, in which each of its endpoints has a share of the frames to send, and
//! one pair of rings for empty and completed frames. An interface has one program, whose map leads
//! from the address of each endpoint to the endpoint's socket.
//!
//! Invariants: a share has one endpoint at a time. The queue is closed with its last endpoint. The
//! program goes with the last endpoint of the interface, unless another process has it too. Called
//! by `open`.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::ffi;
use crate::receive::arrivals::fill_all;
use crate::shared::{SharedRings, Shares};
use crate::sharing::{self, Offer};
use crate::socket::{Host, QueueRings, patiently};
use crate::steering::{Mode, Steering};
use crate::umem::{FRAME, Ledger, MIN_FRAMES, Umem};

/// The key of an interface: the device and inode numbers of its network namespace, and its index.
type Key = (u64, u64, u32);

/// The place of an interface, empty if no endpoint uses the interface. An endpoint holds the lock
/// while it opens the interface.
type Place = Arc<Mutex<Weak<Interface>>>;

/// The interfaces that endpoints of this process use or open.
static INTERFACES: Mutex<BTreeMap<Key, Place>> = Mutex::new(BTreeMap::new());

/// Longest time to wait for the answers of other processes.
const PATIENCE: Duration = Duration::from_secs(1);

/// An interface with our program.
#[derive(Debug)]
pub(crate) struct Interface {
    // Fields are dropped in this order: the offer ends before the program.
    _offer: Offer,
    steering: Arc<Steering>,
    index: u32,
    mode: Mode,
    queues: Mutex<BTreeMap<u32, Weak<Queue>>>,
}

impl Interface {
    /// Gets interface `index` of the calling thread's namespace, with a program that runs in this
    /// mode.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if other endpoints of this user use the other mode, or if the
    /// interface has a program that no process of this user offers.
    pub(crate) fn get(index: u32, mode: Mode) -> io::Result<Arc<Self>> {
        let (device, inode) = ffi::network_namespace()?;
        let place = place_of((device, inode, index));
        let mut place = lock(&place);
        if let Some(interface) = place.upgrade() {
            check_mode(interface.mode, mode)?;
            return Ok(interface);
        }
        let steering = Arc::new(adopt_or_attach(index, mode)?);
        let interface = Arc::new(Self {
            _offer: Offer::make(index, mode, &steering)?,
            steering,
            index,
            mode,
            queues: Mutex::default(),
        });
        *place = Arc::downgrade(&interface);
        Ok(interface)
    }

    /// Gets the queue with this number. The first endpoint of the queue determines the size of the
    /// region and the number of shares.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if another process has the queue.
    pub(crate) fn queue(
        &self,
        number: u32,
        umem_bytes: u64,
        shares: u32,
    ) -> io::Result<Arc<Queue>> {
        let mut queues = self.queues();
        if let Some(queue) = queues.get(&number).and_then(Weak::upgrade) {
            return Ok(queue);
        }
        let queue = Arc::new(Queue::open(self.index, number, umem_bytes, shares)?);
        queues.insert(number, Arc::downgrade(&queue));
        Ok(queue)
    }

    /// True if only the caller has the queue. In that case, no other endpoint gets the queue from
    /// then on.
    pub(crate) fn retire(&self, queue: &Arc<Queue>) -> bool {
        let mut queues = self.queues();
        let is_last = Arc::strong_count(queue) == 1;
        if is_last {
            queues.retain(|_, other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(queue)));
        }
        is_last
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<u32, Weak<Queue>>> {
        lock(&self.queues)
    }

    /// The program.
    pub(crate) fn steering(&self) -> &Steering {
        &self.steering
    }
}

/// The place of an interface.
fn place_of(key: Key) -> Place {
    let mut places = lock(&INTERFACES);
    // A place that only the map has is not locked.
    places.retain(|_, place| Arc::strong_count(place) > 1 || lock(place).strong_count() > 0);
    places.entry(key).or_default().clone()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adopts the program that another process of this user has at the interface, or attaches a new
/// one.
fn adopt_or_attach(index: u32, mode: Mode) -> io::Result<Steering> {
    let new = Steering::load()?;
    let deadline = Instant::now() + PATIENCE;
    // Another process may have attached its program without offering it yet, or may be ending, with
    // a program in the other mode.
    let found = patiently(|| match sharing::adopt(index, deadline) {
        Some((steering, its_mode)) => check_mode(its_mode, mode).map(|()| Some(steering)),
        // The new program's maps are empty, so all packets pass to the kernel at first.
        None => new.try_attach(index, mode).map(|()| None),
    })?;
    let Some(steering) = found else {
        return Ok(new);
    };
    steering.forget_dead(ffi::udp_sockets)?;
    Ok(steering)
}

fn check_mode(has: Mode, wanted: Mode) -> io::Result<()> {
    if has == wanted {
        return Ok(());
    }
    let why = "other endpoints of this user use the interface in the other mode";
    Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
}

/// A queue with our region.
#[derive(Debug)]
pub(crate) struct Queue {
    host: Host,
    rings: Arc<SharedRings>,
    receiving: Ledger,
    /// Frames to send, by share.
    sending: Vec<Ledger>,
    /// For each share, whether an endpoint has it. Empty until the first share is taken.
    taken: Mutex<Vec<bool>>,
}

/// The number of the share of a queue that one endpoint has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share(usize);

impl Share {
    pub(crate) fn number(self) -> usize {
        self.0
    }
}

impl Queue {
    fn open(index: u32, number: u32, umem_bytes: u64, shares: u32) -> io::Result<Self> {
        let sizes = sizes(umem_bytes, shares, ffi::pinnable())?;
        let (umem, host, rings) = open_with_region(index, number, sizes)?;
        let (receiving, sending) = umem.split(shares);
        let first = &sending[0];
        let shape = Shares {
            start: first.start(),
            bytes: u64::from(first.count()) * FRAME as u64,
            count: sending.len(),
            frames: first.count() as usize,
        };
        let rings = SharedRings::new(rings.fill, rings.completion, shape);
        if fill_all(&receiving, &rings) {
            host.kick_fill();
        }
        Ok(Self {
            host,
            rings: Arc::new(rings),
            receiving,
            sending,
            taken: Mutex::default(),
        })
    }

    /// Reserves a share. `None` if endpoints have them all.
    pub(crate) fn take_share(&self) -> Option<Share> {
        take_free(&mut self.taken(), self.sending.len()).map(Share)
    }

    /// Makes a share free for another endpoint.
    pub(crate) fn give_share_back(&self, share: Share) {
        self.taken()[share.0] = false;
    }

    /// The socket that has the region.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The number of frames that an endpoint has for sending, and the most packets that may wait
    /// for it. The waiting packets of all endpoints together need no more frames than the region
    /// has for receiving.
    pub(crate) fn share_frames(&self) -> u32 {
        self.sending[0].count()
    }

    /// The rings that its endpoints share.
    pub(crate) fn rings(&self) -> Arc<SharedRings> {
        self.rings.clone()
    }

    /// The frames for received packets.
    pub(crate) fn receiving(&self) -> &Ledger {
        &self.receiving
    }

    /// The frames of a share.
    pub(crate) fn sending(&self, share: Share) -> &Ledger {
        &self.sending[share.0]
    }

    fn taken(&self) -> MutexGuard<'_, Vec<bool>> {
        lock(&self.taken)
    }
}

/// Takes the first free number below `count`.
fn take_free(taken: &mut Vec<bool>, count: usize) -> Option<usize> {
    taken.resize(count, false);
    let number = taken.iter().position(|taken| !taken)?;
    taken[number] = true;
    Some(number)
}

/// Sizes of a region to try, in bytes. The first is the size that the options ask for. If the user
/// may pin less than that, it is half of the limit, so that other processes and queues of the user
/// find room. Each further size is half of the one before, down to the least that these shares
/// need.
fn sizes(bytes: u64, shares: u32, pinnable: Option<u64>) -> io::Result<impl Iterator<Item = u64>> {
    let least = u64::from(MIN_FRAMES) * u64::from(shares) * FRAME as u64;
    if bytes < least {
        let why = format!("a region of frames for {shares} endpoints has {least} bytes or more");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let first = match pinnable {
        Some(limit) if limit < bytes => (limit / 2).max(least),
        _ => bytes,
    };
    let half = move |last: &u64| (*last > least).then(|| (last / 2).max(least));
    Ok(std::iter::successors(Some(first), half))
}

/// Opens a queue, with a region of the first of these sizes that the kernel pins.
fn open_with_region(
    index: u32,
    number: u32,
    mut sizes: impl Iterator<Item = u64>,
) -> io::Result<(Arc<Umem>, Host, QueueRings)> {
    let mut bytes = sizes.next().expect("there is a first size");
    loop {
        let umem = Umem::new(u32::try_from(bytes / FRAME as u64).unwrap_or(u32::MAX))?;
        match (Host::open(index, number, umem.clone()), sizes.next()) {
            (Ok((host, rings)), _) => return Ok((umem, host, rings)),
            (Err(error), Some(less)) if error.kind() == io::ErrorKind::OutOfMemory => bytes = less,
            (Err(error), _) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
