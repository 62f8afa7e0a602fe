//! Opens an endpoint: its socket, which has a share of a queue, and its entry in the map of the
//! program that steers packets.
//!
//! Invariant: if a step fails, everything that earlier steps made is removed, and the interface is
//! as it was. The error names what is missing.

use std::ffi::{CStr, CString};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use dunlin_core::transport::{Halves, Limits, Transport};
use dunlin_msgbuf::MIN_DATA_SIZE;
use dunlin_transport::connect::Connect;
use dunlin_transport::udp::{self, Udp, UdpRx, UdpTx};
use dunlin_wire::HEADER_LEN;

use crate::device::Device;
use crate::ffi;
use crate::queue::{Access, Interface, Lead, Queue, Region, Share};
use crate::receive::XdpRx;
use crate::receive::arrivals::Arrivals;
use crate::ring::{Consumer, Desc, Memory, Producer};
use crate::roads::{Below, Link, Tables};
use crate::socket::{Copying, Rings, Socket, explain};
use crate::steering::Mode;
use crate::transmit::XdpTx;
use crate::transmit::frames::Frames;
use crate::watch::{Doubt, Watched};
use crate::ways::{OwnMac, Ways};
use dunlin_packet::Home;

/// The largest number of a VLAN.
const MOST_VLAN: u16 = 4094;

/// Options of one `xdp` endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The interface, by name. With the name of a VLAN interface, frames have its tag, and the
    /// program is attached to the interface below.
    pub interface: String,
    /// The first of its queues. Packets in queues that the endpoint does not have come through the
    /// kernel.
    pub queue: u32,
    /// How many queues the endpoint has, from the first one on: 1 or more. Each has a region of its
    /// own. Packets leave by the first one.
    pub queues: u32,
    /// The number of the VLAN whose tag frames have, or 0 for none. `None`: the VLAN of the
    /// interface, if it has one. Only then does the kernel tag the packets that it sends for the
    /// endpoint.
    pub vlan: Option<u16>,
    /// Where the kernel runs the program that steers.
    pub mode: Mode,
    /// Bytes of the region of frames, which the kernel pins; half is for receiving. If
    /// `RLIMIT_MEMLOCK` permits less, the region is smaller; [`XdpRx::details`] has its size. The
    /// endpoints of a queue share one region, and the first of them determines its size.
    pub umem_bytes: u64,
    /// The most endpoints of this process at the queue. Each has the same share of the region, even
    /// while there are fewer endpoints. The first endpoint of a queue determines the number of
    /// shares.
    pub endpoints: u32,
    /// Whether the driver sends and receives the frames of the region where they lie. It needs
    /// [`Mode::Native`] and a driver that can do so with frames of several pieces. The first
    /// endpoint of a queue determines it. It does not go with `setup`. It is not tested, because no
    /// such driver was available.
    pub zero_copy: bool,
    /// Whether datagrams are accepted whose checksum covers only the pseudo header, or which have
    /// none (IPv4). The former come from neighbours in the same kernel or in a guest of it, whose
    /// devices do not compute the rest. With `zero_copy`, packets come from a card, and both are
    /// refused. If they are refused, the kernel joins no datagrams for the socket (`udp.gro`): in
    /// front of a bridge or a bond, it would do so before the program sees them, and write only
    /// that sum.
    pub partial_sums: bool,
    /// The socket of a daemon (`dunlin xdp-setup`) that opens AF_XDP sockets for a process without
    /// privilege; `None` if this process opens them itself.
    pub setup: Option<PathBuf>,
    /// Options of the socket that receives the packets that are not steered. The endpoint takes its
    /// address, port, sizes and packing from them. An address that stands for any address means one
    /// of the interface.
    pub udp: udp::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interface: String::new(),
            queue: 0,
            queues: 1,
            vlan: None,
            mode: Mode::Generic,
            umem_bytes: 64 << 20,
            endpoints: 4,
            zero_copy: false,
            partial_sums: true,
            setup: None,
            udp: udp::Options::default(),
        }
    }
}

/// AF_XDP as a transport.
#[derive(Clone, Copy, Debug)]
pub struct Xdp;

impl Transport for Xdp {
    type Rx = XdpRx;
    type Tx = XdpTx;
}

/// An open socket of the kernel, and its place at its queue and its interface. Both halves share
/// the socket of the first queue.
#[derive(Debug)]
struct Opened {
    /// Empty when the endpoint ends. Dropped before the interface.
    lead: Option<Lead>,
    socket: Socket,
    /// The memory of the receive ring, from which the last packets' frames are taken at the end.
    received: Memory<Desc>,
    queue: Arc<Queue>,
    share: Share,
    interface: Arc<Interface>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.lead = None;
        if !self.interface.retire(&self.queue) {
            self.leave_frames();
        }
        self.queue.give_share_back(self.share);
    }
}

impl Opened {
    /// Opens a socket with a share of the queue, to which the packets for `home` come from now on.
    /// `owner` is the inode number of the UDP socket that has the address.
    fn new(
        interface: Arc<Interface>,
        queue: Arc<Queue>,
        home: Home,
        owner: u64,
    ) -> io::Result<(Self, Rings)> {
        let share = queue.take_share().ok_or_else(|| {
            busy("the queue has as many endpoints as the option xdp.endpoints allows")
        })?;
        let (socket, rings, lead) = interface
            .open_socket(&queue, home, owner)
            .inspect_err(|_| queue.give_share_back(share))?;
        let opened = Self {
            lead: Some(lead),
            socket,
            received: rings.received.clone(),
            queue,
            share,
            interface,
        };
        Ok((opened, rings))
    }

    /// Opens a socket as [`Self::new`] does, and returns it with its received packets and the ring
    /// of those to send.
    fn at(
        interface: Arc<Interface>,
        queue: Arc<Queue>,
        home: Home,
        owner: u64,
    ) -> io::Result<(Arc<Self>, Arrivals, Producer<Desc>)> {
        let (opened, rings) = Self::new(interface, queue, home, owner)?;
        let opened = Arc::new(opened);
        let (part, shared) = (opened.queue.receiving().shared(), opened.queue.rings());
        let arrivals = Arrivals::new(part, rings.rx, shared, opened.clone());
        Ok((opened, arrivals, rings.tx))
    }

    /// Gives the frames of packets that this endpoint has not read, or has only shown, to the other
    /// endpoints.
    fn leave_frames(&self) {
        ffi::await_programs();
        let mut part = self.queue.receiving().shared();
        let mut rx = Consumer::new(self.received.clone());
        rx.available(u32::MAX);
        // The ring still holds the entries of the burst that was shown last. The ledger says that
        // their frames are ours already, so `take_back` fails for them.
        let next = || {
            let addr = rx.pop()?.addr;
            let _ = part.take_back(addr);
            Some(part.frame_of(addr).and_then(|frame| part.lend(frame)))
        };
        let mut empty = std::iter::from_fn(next).flatten();
        self.queue.rings().fill(|fill| {
            while fill.room(1) > 0
                && let Some(addr) = empty.next()
            {
                fill.push(addr);
            }
        });
    }
}

/// The socket does the work.
impl Device for Opened {
    #[inline]
    fn kick(&self) -> crate::device::Kicked {
        self.socket.kick()
    }

    fn kick_fill(&self) {
        self.socket.kick_fill();
    }

    fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.fd()
    }

    fn statistics(&self) -> crate::device::Statistics {
        self.socket.statistics()
    }

    fn take_error(&self) -> bool {
        self.socket.take_error()
    }
}

impl Xdp {
    /// Opens an endpoint in the network namespace of the caller.
    ///
    /// # Errors
    /// `InvalidInput` for options outside their limits; `NotFound` if there is no such interface.
    /// `ResourceBusy` if another process has the queue, if the queue has as many endpoints as it
    /// may have, if other endpoints of this user use the interface in the other mode, or if it has
    /// an XDP program that no process of this user offers. Otherwise the kernel's error, with the
    /// step that failed and the capability that permits it, or the refusal of the daemon.
    pub fn open(options: &Options) -> io::Result<Halves<XdpRx, XdpTx>> {
        check(options)?;
        let name = name_of(&options.interface)?;
        let index = index_of(&name)?;
        let (mut tables, link) = Tables::open(index)?;
        let (device, own_vlan) = device_of(&link, &mut tables)?;
        let vlan = options.vlan.unwrap_or(own_vlan);
        if vlan > MOST_VLAN {
            return Err(invalid("a VLAN has a number from 1 to 4094"));
        }
        let ip = ip_on(&name, options.udp.ip)?;
        let udp = Udp::open(&udp::Options {
            ip,
            data_size: options.udp.data_size.min(data_in(&link, ip)),
            gro: options.udp.gro && options.takes_partial_sums(),
            ..options.udp.clone()
        })?;
        let address = udp.rx.local_addr();
        let home = Home {
            address,
            vlan,
            mac: link
                .mac
                .ok_or_else(|| invalid("the interface has no Ethernet address"))?,
        };
        let access = options
            .setup
            .as_deref()
            .map_or(Access::OfUser, Access::Daemon);
        let interface = Interface::get(device, options.mode, access)?;
        let owner = owner_of(&udp)?;
        let at = |number| {
            let queue = interface.queue(number, &options.region())?;
            Opened::at(interface.clone(), queue, home, owner)
        };
        let (opened, arrivals, tx) = at(options.queue)?;
        let further = options.queue + 1..options.queue + options.queues;
        let others: Vec<Arrivals> = further
            .map(|number| at(number).map(|(_, arrivals, _)| arrivals))
            .collect::<io::Result<_>>()?;
        let (queue, share) = (&opened.queue, opened.share);
        let frames = Frames::new(
            queue.sending(share).own(),
            share.number(),
            tx,
            queue.rings(),
            opened.clone(),
        );
        let mac = OwnMac::new(home.mac);
        let doubt = Doubt::default();
        // The daemon attaches its program for the first endpoint, so it is there only now.
        let watched = Watched::new(tables, device, doubt.clone());
        let ways = Ways::new(home, mac.clone(), &link, Box::new(watched));
        // All packets of a peer come to one queue.
        let capacity = others.iter().map(Arrivals::capacity).min();
        let limits = Limits {
            rx_queue: arrivals.capacity().min(capacity.unwrap_or(u32::MAX)),
            ..udp.limits
        };
        let rx = XdpRx::new(udp.rx, arrivals, home, mac, options.takes_partial_sums());
        // The daemon makes rules for the first queue alone.
        let rule = opened.lead.as_ref().and_then(Lead::rule);
        Ok(Halves {
            rx: rx.with_queues(others).with_doubt(doubt).with_rule(rule),
            tx: XdpTx::new(udp.tx, ways, frames),
            limits,
        })
    }
}

impl Options {
    /// Whether an endpoint takes datagrams without a whole checksum.
    fn takes_partial_sums(&self) -> bool {
        self.partial_sums && !self.zero_copy
    }

    /// The region of each queue.
    fn region(&self) -> Region {
        Region {
            bytes: self.umem_bytes,
            shares: self.endpoints,
            copying: match self.zero_copy {
                true => Copying::Nothing,
                false => Copying::Frames,
            },
        }
    }
}

/// Checks options that need no look at the interface.
fn check(options: &Options) -> io::Result<()> {
    let last = options.queue.checked_add(options.queues);
    if options.queues == 0 || last.is_none() {
        return Err(invalid("an endpoint has one queue or more (xdp.queues)"));
    }
    if options.zero_copy && options.mode != Mode::Native {
        return Err(invalid("xdp.zero_copy needs xdp.mode = native"));
    }
    if options.zero_copy && options.setup.is_some() {
        return Err(invalid(
            "a daemon opens sockets that copy: xdp.zero_copy does not go with xdp.setup",
        ));
    }
    Ok(())
}

/// The interface whose frames carry those of `link`, and the number of their VLAN. For an interface
/// without a VLAN, it is the interface itself, and 0.
fn device_of(link: &Link, tables: &mut Tables) -> io::Result<(u32, u16)> {
    match link.below {
        Below::Itself => Ok((link.index, 0)),
        Below::Vlan { index, number } => match tables.link(index)?.below {
            Below::Itself => Ok((index, number)),
            _ => Err(invalid("a VLAN inside a VLAN is not supported")),
        },
        Below::Elsewhere => Err(invalid(
            "the VLAN's interface is in another network namespace, or has tags of another kind",
        )),
    }
}

fn name_of(interface: &str) -> io::Result<CString> {
    if interface.is_empty() {
        return Err(invalid("no interface is given (the option xdp.interface)"));
    }
    CString::new(interface).map_err(|_| invalid("an interface's name has no zero"))
}

fn index_of(name: &CStr) -> io::Result<u32> {
    ffi::interface_index(name)
        .map_err(|error| explain(error, &format!("there is no interface {name:?}")))
}

/// The address to bind. If the given one stands for any address, this is an address of the
/// interface of the same family, and a link-local one only if there is no other.
fn ip_on(name: &CStr, given: IpAddr) -> io::Result<IpAddr> {
    let is_of_link = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let found = match given.is_unspecified() {
        // It may be an address that the host has elsewhere: packets for it arrive here as well.
        false => Some(given),
        true => ffi::addresses(name)?
            .into_iter()
            .filter(|ip| ip.is_ipv4() == given.is_ipv4())
            .min_by_key(is_of_link),
    };
    found.filter(|ip| !ip.is_loopback()).ok_or_else(|| {
        let what = format!("xdp needs an address for {name:?} that other hosts reach, not {given}");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// The most data bytes of a packet that the interface has room for. The kernel would cut a longer
/// one into fragments, as it would those of IPv6 with the default size over Ethernet.
fn data_in(link: &Link, ip: IpAddr) -> u32 {
    let headers = HEADER_LEN + if ip.is_ipv6() { 40 + 8 } else { 20 + 8 };
    let headers = u32::try_from(headers).expect("headers are short");
    let most = link.mtu_of(ip.is_ipv6()).saturating_sub(headers);
    most.max(MIN_DATA_SIZE)
}

/// The inode number of the UDP socket that has the endpoint's address.
fn owner_of(udp: &Halves<UdpRx, UdpTx>) -> io::Result<u64> {
    let mut fds = Vec::new();
    Udp::fds(&udp.rx, &udp.tx, &mut fds);
    let fd = *fds.first().ok_or(io::ErrorKind::NotFound)?;
    ffi::number_of_file(fd)
}

fn busy(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, what)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests;
