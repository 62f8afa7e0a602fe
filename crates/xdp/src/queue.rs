//! A queue of an interface, and the interface itself, as the endpoints of this process share them.
//!
//! A queue has one region, in which each of its endpoints has a share of the frames to send, and
//! one pair of rings for empty and completed frames. An interface has one program, whose map leads
//! from the address of each endpoint to the endpoint's socket.
//!
//! Invariants: a share has one endpoint at a time. The queue is closed with its last endpoint. The
//! program goes with the last endpoint of the interface, unless another process has its link. The
//! kernel has empty frames for all endpoints that are open. A process without privilege gets its
//! sockets from a daemon, which has the program. Called by `open`, and by the daemon.

mod program;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::ask::message::{Claim, QueueId};
use crate::ask::{Client, Lease};
use crate::device::Device;
use crate::entries::Entries;
use crate::ffi;
use crate::receive::arrivals::fill;
use crate::shared::{SharedRings, Shares};
use crate::sharing::Offer;
use crate::socket::{self, Copying, Host, QueueRings, Rings, Socket};
use crate::steering::{Mode, Steering};
use crate::umem::{FRAME, Ledger, MIN_FRAMES, Umem};
use dunlin_packet::Home;
use program::{adopt_or_attach, attach_again, check_mode};

/// The key of an interface: the device and inode numbers of its network namespace, and its index.
type Key = (u64, u64, u32);

/// The cell of an interface, empty if no endpoint uses the interface. An endpoint holds the lock
/// while it opens the interface.
type Cell = Arc<Mutex<Weak<Interface>>>;

/// The interfaces that endpoints of this process use or open.
static INTERFACES: Mutex<BTreeMap<Key, Cell>> = Mutex::new(BTreeMap::new());

/// The holder of the program, which opens sockets and leads packets to them.
#[derive(Debug)]
enum Holder {
    /// This process, which may offer the program to others of its user. Fields are dropped in this
    /// order: the offer ends before the program.
    Own {
        offer: Option<Offer>,
        steering: Arc<Steering>,
    },
    /// A daemon, for a process without the privileges.
    Daemon(Client),
}

/// The processes that may have the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access<'a> {
    /// This process, and all others of its user.
    OfUser,
    /// This process alone.
    Alone,
    /// The daemon at this path.
    Daemon(&'a Path),
}

/// An interface with our program.
#[derive(Debug)]
pub(crate) struct Interface {
    holder: Holder,
    index: u32,
    mode: Mode,
    /// The network namespace.
    namespace: (u64, u64),
    queues: Mutex<BTreeMap<u32, Weak<Queue>>>,
}

impl Interface {
    /// Gets interface `index` of the calling thread's namespace, with a program that runs in this
    /// mode, and that these processes may have.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if other endpoints of this user use the other mode, if other
    /// endpoints of this process have another access, or if the interface has a program that no
    /// process of this user offers.
    pub(crate) fn get(index: u32, mode: Mode, access: Access<'_>) -> io::Result<Arc<Self>> {
        let (device, inode) = ffi::network_namespace()?;
        let cell = cell_of((device, inode, index));
        let mut cell = lock(&cell);
        if let Some(interface) = cell.upgrade() {
            check_mode(interface.mode, mode)?;
            interface.check_holder(access)?;
            interface.check_program()?;
            return Ok(interface);
        }
        let interface = Arc::new(Self {
            holder: Holder::open(index, mode, access)?,
            index,
            mode,
            namespace: (device, inode),
            queues: Mutex::default(),
        });
        *cell = Arc::downgrade(&interface);
        Ok(interface)
    }

    fn check_holder(&self, access: Access<'_>) -> io::Result<()> {
        let is_same = match (&self.holder, access) {
            (Holder::Own { offer, .. }, Access::OfUser) => offer.is_some(),
            (Holder::Own { offer, .. }, Access::Alone) => offer.is_none(),
            (Holder::Daemon(client), Access::Daemon(path)) => *client == Client::new(path),
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let why = "other endpoints of this process use the interface with another xdp.setup";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Attaches the program again if an operator has detached it.
    fn check_program(&self) -> io::Result<()> {
        match self.steering() {
            Some(steering) if !steering.is_attached(self.index) => {
                attach_again(steering, self.index, self.mode)
            }
            _ => Ok(()),
        }
    }

    /// Gets the queue with this number. The first endpoint of the queue determines its region.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if another process has the queue.
    pub(crate) fn queue(&self, number: u32, region: &Region) -> io::Result<Arc<Queue>> {
        let mut queues = self.queues();
        if let Some(queue) = queues.get(&number).and_then(Weak::upgrade) {
            return Ok(queue);
        }
        let queue = Arc::new(Queue::open(self, number, region)?);
        queues.insert(number, Arc::downgrade(&queue));
        Ok(queue)
    }

    /// Opens the socket of a queue with a region of `frames` frames.
    fn open_host(
        &self,
        queue: u32,
        frames: u32,
        copying: Copying,
    ) -> io::Result<(Arc<Umem>, Host, QueueRings)> {
        let (umem, fd) = match &self.holder {
            Holder::Own { .. } => {
                let umem = Umem::new(frames)?;
                let fd = socket::bound_host(self.index, queue, &umem, copying)?;
                (umem, fd)
            }
            Holder::Daemon(client) => {
                let memory = ffi::memory::sealed(u64::from(frames) * FRAME as u64)?;
                let umem = Umem::shared(memory.as_fd(), frames)?;
                let fd = client.queue(self.place(queue), memory.as_fd(), frames)?;
                (umem, fd)
            }
        };
        let (host, rings) = Host::of(fd, self.index, queue, umem.clone())?;
        Ok((umem, host, rings))
    }

    /// Opens the socket of an endpoint at a queue, and makes its entries in the program's maps. The
    /// caller has bound the address of `home`; `owner` is the inode number of the UDP socket.
    /// Packets are steered to the socket from now on.
    ///
    /// # Errors
    /// The kernel's, or the daemon's.
    pub(crate) fn open_socket(
        &self,
        queue: &Queue,
        home: Home,
        owner: u64,
    ) -> io::Result<(Socket, Rings, Lead)> {
        let (host, count, number) = (&queue.host, queue.share_frames(), queue.number);
        match &self.holder {
            Holder::Own { steering, .. } => {
                let (socket, rings) = Socket::open(host, count)?;
                let fd = socket.fd().expect("a socket has a descriptor");
                let entries = Entries::add(steering, fd, home, number, owner)?;
                entries.steer()?;
                Ok((socket, rings, Lead::Own(entries)))
            }
            Holder::Daemon(client) => {
                let claim = Claim {
                    address: home.address,
                    vlan: home.vlan,
                    owner,
                };
                let place = self.place(number);
                let (fd, lease) = client.endpoint(place, host.fd(), count, claim)?;
                let (socket, rings) = Socket::of(fd, host, count)?;
                Ok((socket, rings, Lead::Daemon(lease)))
            }
        }
    }

    /// A queue of this interface, for the daemon.
    fn place(&self, queue: u32) -> QueueId {
        QueueId {
            namespace: self.namespace,
            index: self.index,
            queue,
            mode: self.mode,
        }
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

    /// The program, if this process has it.
    pub(crate) fn steering(&self) -> Option<&Arc<Steering>> {
        match &self.holder {
            Holder::Own { steering, .. } => Some(steering),
            Holder::Daemon(_) => None,
        }
    }
}

impl Holder {
    fn open(index: u32, mode: Mode, access: Access<'_>) -> io::Result<Self> {
        let (steering, offer) = match access {
            Access::OfUser => {
                let steering = Arc::new(adopt_or_attach(index, mode)?);
                let offer = Offer::make(index, mode, &steering)?;
                (steering, Some(offer))
            }
            Access::Alone => {
                let steering = Steering::load()?;
                steering.attach(index, mode)?;
                (Arc::new(steering), None)
            }
            Access::Daemon(path) => return Ok(Self::Daemon(Client::new(path))),
        };
        Ok(Self::Own { offer, steering })
    }
}

/// The entries that lead packets to an endpoint's socket. Dropping this value removes them.
#[derive(Debug)]
pub(crate) enum Lead {
    /// Entries of this process.
    Own(#[expect(dead_code, reason = "kept until the endpoint ends")] Entries),
    /// Entries of the daemon.
    Daemon(Lease),
}

impl Lead {
    /// Whether the device puts the endpoint's packets into the endpoint's queue, by a rule of the
    /// daemon. `None` if there is no daemon, or if its table permits no rules.
    pub(crate) fn rule(&self) -> Option<bool> {
        match self {
            Self::Own(_) => None,
            Self::Daemon(lease) => lease.rule(),
        }
    }
}

/// The cell of an interface.
fn cell_of(key: Key) -> Cell {
    let mut cells = lock(&INTERFACES);
    // A cell that only the map has is not locked.
    cells.retain(|_, cell| Arc::strong_count(cell) > 1 || lock(cell).strong_count() > 0);
    cells.entry(key).or_default().clone()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region of a queue, as the first endpoint of the queue wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    pub(crate) bytes: u64,
    /// The most endpoints of the queue.
    pub(crate) shares: u32,
    pub(crate) copying: Copying,
}

/// A queue with our region.
#[derive(Debug)]
pub(crate) struct Queue {
    host: Host,
    number: u32,
    rings: Arc<SharedRings>,
    receiving: Ledger,
    /// Frames to send, by share.
    sending: Vec<Ledger>,
    places: Mutex<Places>,
}

/// The shares of a queue.
#[derive(Debug)]
struct Places {
    /// For each share, whether an endpoint has it.
    taken: Vec<bool>,
    /// The number of shares whose frames for received packets the kernel has got. The kernel uses
    /// its empty frames in turn, so the fewer it has, the more of them stay in the processor's
    /// caches.
    filled: usize,
}

/// The number of the share of a queue that one endpoint has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share(usize);

impl Share {
    pub(crate) fn number(self) -> usize {
        self.0
    }
}

impl Places {
    /// Takes the first free share.
    fn take(&mut self) -> Option<Share> {
        let number = self.taken.iter().position(|taken| !taken)?;
        self.taken[number] = true;
        Some(Share(number))
    }

    /// The next share whose frames the kernel must get, because there are more endpoints than ever
    /// before.
    fn next_to_fill(&mut self) -> Option<usize> {
        let used = self.taken.iter().filter(|taken| **taken).count();
        let next = self.filled;
        (used > next).then(|| {
            self.filled += 1;
            next
        })
    }
}

impl Queue {
    fn open(interface: &Interface, number: u32, region: &Region) -> io::Result<Self> {
        let Region {
            bytes,
            shares,
            copying,
        } = *region;
        let pinnable = match interface.holder {
            Holder::Own { .. } => ffi::pinnable(),
            // The daemon pins the region.
            Holder::Daemon(_) => None,
        };
        let sizes = sizes(bytes, shares, pinnable)?;
        let open = |frames| interface.open_host(number, frames, copying);
        let (umem, host, rings) = open_with_region(sizes, open)?;
        let (receiving, sending) = umem.split(shares);
        let first = &sending[0];
        let shape = Shares {
            start: first.start(),
            bytes: u64::from(first.count()) * FRAME as u64,
            count: sending.len(),
            frames: first.count() as usize,
        };
        Ok(Self {
            host,
            number,
            rings: Arc::new(SharedRings::new(rings.fill, rings.completion, shape)),
            receiving,
            places: Mutex::new(Places {
                taken: vec![false; sending.len()],
                filled: 0,
            }),
            sending,
        })
    }

    /// Reserves a share. `None` if endpoints have them all.
    pub(crate) fn take_share(&self) -> Option<Share> {
        let mut places = lock(&self.places);
        let share = places.take()?;
        if let Some(next) = places.next_to_fill() {
            self.fill(next);
        }
        Some(share)
    }

    /// Gives the kernel the frames for received packets of one share.
    fn fill(&self, share: usize) {
        let [of_share, all] = [self.share_frames(), self.receiving.count()];
        let number = u32::try_from(share).expect("there are few shares");
        // The last share also gets the rest of the division.
        let end = match share + 1 == self.sending.len() {
            true => all,
            false => (number + 1) * of_share,
        };
        if fill(&self.receiving, &self.rings, number * of_share..end) {
            self.host.kick_fill();
        }
    }

    /// Makes a share free for another endpoint.
    pub(crate) fn give_share_back(&self, share: Share) {
        lock(&self.places).taken[share.0] = false;
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

/// Opens a queue with a region of the first size that is granted. `open` takes a number of frames.
fn open_with_region<T>(
    mut sizes: impl Iterator<Item = u64>,
    open: impl Fn(u32) -> io::Result<T>,
) -> io::Result<T> {
    let mut bytes = sizes.next().expect("there is a first size");
    loop {
        let frames = u32::try_from(bytes / FRAME as u64).unwrap_or(u32::MAX);
        match (open(frames), sizes.next()) {
            (Err(error), Some(less)) if error.kind() == io::ErrorKind::OutOfMemory => bytes = less,
            (outcome, _) => return outcome,
        }
    }
}

#[cfg(test)]
mod tests;
