//! The daemon: opens sockets for processes without privilege, as its table says.
//!
//! A process hands over the memory of a region; the daemon registers it with the kernel, binds the
//! socket, and passes the bound socket. It never passes the program or its maps, not even to
//! processes of its own user. Each connection has one request and a thread. The entries and the
//! socket of an endpoint live as long as its connection, so the daemon lets go of them when the
//! process ends, however it ends. If the daemon ends, the program ends, and packets come through
//! the kernel.
//!
//! Invariant: the daemon neither reads a packet nor maps a ring, and touches no byte of a region.
//! Called by the command `dunlin xdp-setup`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rules::{Kept, Rules};
use super::table::Table;
use crate::ask::message::{Claim, QueueId, REQUEST, Request, Wish, grant, refusal};
use crate::entries::Entries;
use crate::ffi::{self, descriptors};
use crate::queue::{Access, Interface};
use crate::socket::{self, Copying};
use crate::umem::Umem;
use dunlin_packet::Home;

/// The most connections of one user, and of all users together.
pub(super) const MOST_OF_USER: u32 = 128;
const MOST: u32 = 1024;

/// Longest time to wait for a request, and for room for its answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pause after a connection that could not be accepted or given a thread.
const AFTER_FAILURE: Duration = Duration::from_millis(20);

/// Bytes of the stack of a connection's thread.
const STACK: usize = 128 << 10;

/// The daemon.
#[derive(Debug)]
pub struct Daemon {
    table: Table,
    /// The connections of each user.
    live: Mutex<BTreeMap<u32, u32>>,
    /// The queues, by interface and number, whose sockets are being opened.
    opening: Mutex<BTreeSet<(u32, u32)>>,
    rules: Arc<Rules>,
    note: Note,
}

/// Takes the daemon's messages to its operator.
struct Note(Box<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Note")
    }
}

impl Daemon {
    /// A daemon with this table, in the network namespace of the threads that serve. It calls
    /// `note` with a message for its operator when a device refuses a rule.
    pub fn new(table: Table, note: impl Fn(&str) + Send + Sync + 'static) -> Arc<Self> {
        Self::with_rules(table, Rules::default(), note)
    }

    /// A daemon with this table, which makes rules through `rules`.
    pub(super) fn with_rules(
        table: Table,
        rules: Rules,
        note: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            table,
            live: Mutex::default(),
            opening: Mutex::default(),
            rules: Arc::new(rules),
            note: Note(Box::new(note)),
        })
    }

    /// Ends the rules of devices, which would otherwise outlive the daemon. After that, the daemon
    /// makes no rule.
    pub fn end(&self) {
        self.rules.end();
    }

    /// Gives up all privileges of the calling thread and of threads that it starts later, except
    /// the capabilities that the daemon needs. A thread of root becomes one of this user, with the
    /// group of the same number and no other.
    ///
    /// # Errors
    /// The kernel's.
    pub fn give_up_privileges(user: u32) -> io::Result<()> {
        ffi::privileges::keep_those_of_xdp(user)
    }

    /// Serves the processes that connect, for ever.
    pub fn serve(self: &Arc<Self>, listener: &UnixListener) {
        loop {
            let served = listener.accept().and_then(|(stream, _)| self.begin(stream));
            if served.is_err() {
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }

    /// Starts a thread for a connection, or refuses it if there is no room.
    ///
    /// # Errors
    /// The kernel's, if it starts no thread.
    pub(super) fn begin(self: &Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let user = descriptors::user_of_peer(stream.as_fd())?;
        let Some(turn) = self.enter(user) else {
            let why = format!("user {user} has too many connections");
            let full = io::Error::new(io::ErrorKind::ResourceBusy, why);
            // The refusal fits the socket of a new connection, so the write does not wait. It fails
            // if the process has gone, which must not make others wait.
            let _ = (&stream).write_all(&refusal(&full));
            return Ok(());
        };
        let thread = std::thread::Builder::new()
            .name("dunlin-setup".to_owned())
            .stack_size(STACK);
        thread.spawn(move || turn.serve(user, &stream))?;
        Ok(())
    }

    /// A turn for a connection of this user, if there is room.
    pub(super) fn enter(self: &Arc<Self>, user: u32) -> Option<Turn> {
        let mut live = self.live();
        if live.values().sum::<u32>() >= MOST {
            return None;
        }
        let of_user = live.entry(user).or_default();
        if *of_user >= MOST_OF_USER {
            return None;
        }
        *of_user += 1;
        Some(Turn {
            daemon: self.clone(),
            user,
        })
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<u32, u32>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other request opens this queue. Each pins its region before the kernel says
    /// whether the queue is free, so several at once would pin more than the table grants.
    ///
    /// # Errors
    /// `ResourceBusy` if others open the queue for a second.
    pub(super) fn open_alone(&self, index: u32, queue: u32) -> io::Result<Opening<'_>> {
        let place = (index, queue);
        socket::patiently(|| match self.opening().insert(place) {
            true => Ok(Opening {
                daemon: self,
                place,
            }),
            false => {
                let why = format!("another process is asking for queue {queue}");
                Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
            }
        })
    }

    fn opening(&self) -> MutexGuard<'_, BTreeSet<(u32, u32)>> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a user asks for, with the descriptor that came with the request.
    fn grant(&self, user: u32, request: Request, descriptor: &OwnedFd) -> io::Result<Granted> {
        let Request { place, wish } = request;
        check_namespace(&place)?;
        let is_it = |name: &str| is_interface(name, place.index);
        let of_queue = (place.queue, place.mode);
        match wish {
            Wish::Queue { frames } => {
                self.table.permits_queue(user, is_it, of_queue, frames)?;
                let _opening = self.open_alone(place.index, place.queue)?;
                open_queue(&place, frames, descriptor).map(Granted::Queue)
            }
            Wish::Endpoint { entries, claim } => {
                let grant = self
                    .table
                    .permits_claim(user, is_it, of_queue, &claim, entries)?;
                let mut held = open_endpoint(&place, descriptor, entries, &claim)?;
                if grant.rules && claim.vlan == 0 {
                    held.rule = self.make_rule(&grant.interface, &place, claim.address);
                    held.has_asked = true;
                }
                Ok(Granted::Endpoint(held))
            }
        }
    }

    /// Asks a device for a rule. Without one, packets come to the queue that the device chooses,
    /// and the operator reads the reason.
    fn make_rule(&self, interface: &str, place: &QueueId, to: SocketAddr) -> Option<Kept> {
        let rule = self.rules.steer(place.index, to, place.queue);
        let note = |why: &io::Error| {
            let queue = place.queue;
            (self.note.0)(&format!(
                "{interface} has no rule for {to} at queue {queue}: {why}"
            ));
        };
        rule.inspect_err(note).ok()
    }
}

/// The outcome of a request.
enum Granted {
    /// The socket of a queue, which the daemon does not keep.
    Queue(OwnedFd),
    /// An endpoint, which the daemon keeps until its connection ends.
    Endpoint(Held),
}

impl Granted {
    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Queue(socket) | Self::Endpoint(Held { socket, .. }) => socket.as_fd(),
        }
    }

    /// Whether a rule of the device puts the endpoint's packets into the endpoint's queue; `None`
    /// if the device was not asked for one.
    fn rule(&self) -> Option<bool> {
        match self {
            Self::Queue(_) => None,
            Self::Endpoint(held) => held.has_asked.then_some(held.rule.is_some()),
        }
    }
}

/// An endpoint of another process. Fields are dropped in this order: the kernel frees the number of
/// a socket that ends, and the entries must not remove the socket that has the number next.
struct Held {
    rule: Option<Kept>,
    /// Whether the device was asked for a rule.
    has_asked: bool,
    _entries: Entries,
    socket: OwnedFd,
    _interface: Arc<Interface>,
}

/// The right of one request to open the socket of a queue.
pub(super) struct Opening<'a> {
    daemon: &'a Daemon,
    place: (u32, u32),
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.daemon.opening().remove(&self.place);
    }
}

/// A place among the live connections.
#[derive(Debug)]
pub(super) struct Turn {
    daemon: Arc<Daemon>,
    user: u32,
}

impl Turn {
    /// Answers the request of a connection, and keeps an endpoint until the connection ends.
    fn serve(&self, user: u32, stream: &UnixStream) {
        // A process that does not ask in time, or that has gone, gets nothing.
        let Ok((request, descriptor)) = read_request(stream) else {
            return;
        };
        match self.daemon.grant(user, request, &descriptor) {
            Ok(granted) => {
                drop(descriptor);
                let answer = grant(granted.rule());
                let sent = descriptors::send(stream.as_fd(), &answer, &[granted.socket()]);
                if matches!(granted, Granted::Endpoint(_)) && sent.is_ok() {
                    await_end(stream);
                }
            }
            Err(error) => drop((&*stream).write_all(&refusal(&error))),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut live = self.daemon.live();
        if let Some(count) = live.get_mut(&self.user) {
            *count -= 1;
        }
        live.retain(|_, count| *count > 0);
    }
}

/// The request of a connection, and the descriptor that came with it.
fn read_request(stream: &UnixStream) -> io::Result<(Request, OwnedFd)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut room = [0; REQUEST];
    let (len, descriptors) = descriptors::receive(stream.as_fd(), &mut room)?;
    let request = Request::of(&room[..len]).ok_or(io::ErrorKind::InvalidData)?;
    let descriptor = descriptors.into_iter().next();
    Ok((request, descriptor.ok_or(io::ErrorKind::InvalidData)?))
}

/// Waits until the process closes its end.
fn await_end(mut stream: &UnixStream) {
    // Without a limit, reading waits for ever.
    if stream.set_read_timeout(None).is_err() {
        return;
    }
    loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}

/// The daemon knows interfaces by their numbers, which mean nothing in another namespace.
fn check_namespace(place: &QueueId) -> io::Result<()> {
    match ffi::network_namespace()? == place.namespace {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this daemon serves another network namespace",
        )),
    }
}

/// Whether the interface with this name has this number.
fn is_interface(name: &str, index: u32) -> bool {
    let name = std::ffi::CString::new(name);
    name.is_ok_and(|name| ffi::interface_index(&name).is_ok_and(|it| it == index))
}

/// The socket of a queue, with a region in the memory of another process.
fn open_queue(place: &QueueId, frames: u32, memory: &OwnedFd) -> io::Result<OwnedFd> {
    let bytes = u64::from(frames) * crate::umem::FRAME as u64;
    ffi::memory::check_sealed(memory.as_fd(), bytes)?;
    // The kernel keeps the pages after this mapping has ended.
    let umem = Umem::shared(memory.as_fd(), frames)?;
    socket::bound_host(place.index, place.queue, &umem, Copying::Frames)
}

/// The socket of an endpoint, and its entries in the program's maps.
fn open_endpoint(place: &QueueId, host: &OwnedFd, entries: u32, claim: &Claim) -> io::Result<Held> {
    // If the descriptor is not that of a socket with a region at this queue, the kernel refuses to
    // bind.
    let socket = socket::bound(host.as_fd(), place.index, place.queue, entries)?;
    let interface = Interface::get(place.index, place.mode, Access::Alone)?;
    let home = Home {
        address: SocketAddr::new(claim.address.ip(), claim.address.port()),
        vlan: claim.vlan,
        // The program does not look at Ethernet addresses.
        mac: [0; 6],
    };
    let steering = interface.steering().ok_or(io::ErrorKind::Unsupported)?;
    let entries = Entries::add(steering, socket.as_fd(), home, place.queue, claim.owner)?;
    entries.claim()?;
    Ok(Held {
        rule: None,
        has_asked: false,
        _entries: entries,
        socket,
        _interface: interface,
    })
}
