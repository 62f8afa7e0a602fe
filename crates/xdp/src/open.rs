//! Opens an endpoint: the socket of the kernel, the region and the rings, the program that steers.
//!
//! Invariant: if a step fails, everything that earlier steps made is removed, and the interface is
//! as it was. The error names what is missing.

use std::ffi::{CStr, CString};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use dunlin_core::transport::{Halves, Limits, Transport};
use dunlin_transport::udp::{self, Udp};

use crate::device::Device;
use crate::ffi;
use crate::packet::Home;
use crate::receive::XdpRx;
use crate::receive::arrivals::Arrivals;
use crate::roads::Tables;
use crate::socket::{Rings, Socket, explain};
use crate::steering::{Mode, Steering};
use crate::transmit::XdpTx;
use crate::transmit::frames::Frames;
use crate::umem::{FRAME, MIN_FRAMES, Umem};
use crate::ways::{OwnMac, Ways};

/// Options of one `xdp` endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The interface, by name.
    pub interface: String,
    /// Its queue. Packets that the interface puts into another queue come through the kernel.
    pub queue: u32,
    /// Where the kernel runs the program that steers.
    pub mode: Mode,
    /// Bytes of the region of frames, which the kernel pins; half is for receiving. If
    /// `RLIMIT_MEMLOCK` permits less, the region is smaller; [`XdpRx::details`] has its size.
    pub umem_bytes: u64,
    /// Whether datagrams whose checksum covers only the pseudo header are accepted. They come from
    /// neighbours in the same kernel or in a guest of it, whose devices do not compute the rest.
    pub partial_sums: bool,
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
            mode: Mode::Generic,
            umem_bytes: 64 << 20,
            partial_sums: true,
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

/// An open socket of the kernel, with the program that steers to it. Both halves share it: when the
/// second of them goes, link, maps and socket go too.
#[derive(Debug)]
struct Opened {
    socket: Socket,
    steering: Steering,
    home: Home,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // From now on, the program finds no socket for arriving packets and passes them to the
        // kernel.
        self.steering.release(&self.home);
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
    /// `InvalidInput` for options outside their limits; `NotFound` if there is no such interface;
    /// `ResourceBusy` if its queue is taken, or it has an XDP program; otherwise the kernel's error
    /// with the step that failed and the capability that permits it.
    pub fn open(options: &Options) -> io::Result<Halves<XdpRx, XdpTx>> {
        let name = name_of(&options.interface)?;
        let index = index_of(&name)?;
        let (tables, link) = Tables::open(index)?;
        let udp = Udp::open(&udp::Options {
            ip: ip_on(&name, options.udp.ip)?,
            ..options.udp.clone()
        })?;
        let address = udp.rx.local_addr();
        let home = Home {
            address,
            vlan: 0,
            mac: link
                .mac
                .ok_or_else(|| invalid("the interface has no Ethernet address"))?,
        };
        let umem = region(options.umem_bytes)?;
        let (for_rx, for_tx) = umem.halves();
        let (socket, rings) = Socket::open(index, options.queue, umem)?;
        let steering = steer(&socket, &home, options.queue)?;
        let opened = Arc::new(Opened {
            socket,
            steering,
            home,
        });
        let Rings {
            rx,
            fill,
            tx,
            completion,
        } = rings;
        let arrivals = Arrivals::new(for_rx, rx, fill, opened.clone());
        let frames = Frames::new(for_tx, tx, completion, opened.clone());
        // Last, because a packet may be steered from now on, and needs an empty frame.
        opened.steering.attach(index, options.mode)?;
        let mac = OwnMac::new(home.mac);
        let ways = Ways::new(home, mac.clone(), &link, Box::new(tables));
        let limits = Limits {
            rx_queue: arrivals.capacity(),
            ..udp.limits
        };
        Ok(Halves {
            rx: XdpRx::new(udp.rx, arrivals, home, mac, options.partial_sums),
            tx: XdpTx::new(udp.tx, ways, frames),
            limits,
        })
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

/// The address to bind. If the given one stands for any address, this is one of the interface's own
/// of the same family, and not one of the link alone if there is another.
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

/// The region: of the size that the options ask for, or less if the process may pin less.
fn region(bytes: u64) -> io::Result<Arc<Umem>> {
    let frames = |bytes: u64| u32::try_from(bytes / FRAME as u64).unwrap_or(u32::MAX);
    let least = u64::from(MIN_FRAMES) * FRAME as u64;
    let permitted = match ffi::pinnable() {
        Some(limit) if limit < bytes && limit >= least => limit,
        _ => bytes,
    };
    Umem::new(frames(permitted))
}

/// The program, not attached, with one socket and one endpoint.
fn steer(socket: &Socket, home: &Home, queue: u32) -> io::Result<Steering> {
    let steering = Steering::load()?;
    let fd = socket.fd().expect("a socket has a descriptor");
    steering.set_socket(0, fd)?;
    steering.steer(home, 0, queue)?;
    Ok(steering)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
