//! Two endpoints without a device or privileges: a kernel in user space carries frames from the
//! transmit ring of each to the receive ring of the other, when the program says so. So the program
//! can count the work of the transport apart from the kernel's (`cargo xtask budget`).
//!
//! Everything else is as over an interface: the endpoints have a socket each, and the kernel asks
//! for a system call for each burst, which does nothing here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use dunlin_core::transport::{Halves, Limits};
use dunlin_transport::udp::{self, Udp};

use crate::device::{Device, Kicked, Statistics};
use crate::receive::XdpRx;
use crate::receive::arrivals::{Arrivals, fill};
use crate::ring::{Consumer, Desc, Memory, Producer};
use crate::roads::{Attached, Below, Change, Link, Neighbour, Road, Roads};
use crate::shared::{SharedRings, Shares};
use crate::transmit::XdpTx;
use crate::transmit::frames::Frames;
use crate::umem::{FRAME, Umem};
use crate::ways::{OwnMac, Ways};
use dunlin_packet::{Home, Mac};

mod lan;

pub use lan::open;

/// Frames of each region.
const FRAMES: u32 = 1024;

/// Bytes of the longest IP packet: the longest packet of an endpoint fits, so none goes to the
/// socket, which would send it to the addresses of a real network.
const MTU: u32 = 2000;

/// Bytes that the kernel leaves free in front of a received packet.
const HEADROOM: u64 = 256;

/// The halves of an endpoint.
type Both = Halves<XdpRx, XdpTx>;

/// The kernel between two endpoints.
#[derive(Debug)]
pub struct Wire {
    sides: [Side; 2],
}

/// The kernel's ends of the rings of one endpoint.
#[derive(Debug)]
struct Side {
    umem: Arc<Umem>,
    rx: Producer<Desc>,
    fill: Consumer<u64>,
    tx: Consumer<Desc>,
    completion: Producer<u64>,
    /// Wakes the endpoint, if it is in a network.
    bell: Option<Arc<lan::Bell>>,
}

/// A device that takes frames only when the wire carries them.
#[derive(Debug)]
struct Silent;

/// Every address belongs to a neighbour, whose Ethernet address follows from it.
#[derive(Debug)]
struct Direct;

/// Opens two endpoints with a wire between them. With `pack`, packets share datagrams.
///
/// # Errors
/// The kernel's, for sockets of loopback and for memory.
///
/// ```
/// let ([one, two], mut wire) = dunlin_xdp::wire::joined(false)?;
/// assert_ne!(one.rx.local_addr(), two.rx.local_addr());
/// wire.carry();
/// # std::io::Result::Ok(())
/// ```
pub fn joined(pack: bool) -> io::Result<([Both; 2], Wire)> {
    let open = |number| Side::open(Ipv4Addr::new(10, 0, 0, number), pack, Arc::new(Silent));
    let ((one, first), (two, second)) = (open(1)?, open(2)?);
    let sides = [first, second];
    Ok(([one, two], Wire { sides }))
}

impl Wire {
    /// Carries all frames that the endpoints have sent.
    ///
    /// # Panics
    /// If a frame has several pieces, or finds no room.
    pub fn carry(&mut self) {
        let [one, two] = &mut self.sides;
        one.carry_to(two);
        two.carry_to(one);
    }
}

impl Side {
    /// Opens the endpoint with this address.
    fn open(ip: Ipv4Addr, pack: bool, device: Arc<dyn Device>) -> io::Result<(Both, Self)> {
        let mac = mac_of(ip);
        let ip = IpAddr::from(ip);
        let udp = Udp::open(&udp::Options {
            advertise: Some(ip),
            allow_peers: "10.0.0.0/16".parse().expect("a network"),
            pack,
            loopback_data_size: udp::Options::default().data_size,
            ..udp::Options::default()
        })?;
        let home = Home {
            address: SocketAddr::new(ip, udp.rx.local_addr().port()),
            vlan: 0,
            mac,
        };
        let umem = Umem::new(FRAMES)?;
        let (receiving, sending) = umem.split(1);
        let count = FRAMES / 2;
        let [rx, tx] = [Memory::anonymous(count)?, Memory::anonymous(count)?];
        let [empty, completed] = [Memory::anonymous(count)?, Memory::anonymous(count)?];
        let side = Self {
            umem,
            rx: Producer::new(rx.clone()),
            fill: Consumer::new(empty.clone()),
            tx: Consumer::new(tx.clone()),
            completion: Producer::new(completed.clone()),
            bell: None,
        };
        // As in copy mode: the kernel sends when it is asked to.
        side.tx.ask_for_wakeup(true);
        let shares = Shares {
            start: sending[0].start(),
            bytes: u64::from(count) * FRAME as u64,
            count: 1,
            frames: count as usize,
        };
        let shared = SharedRings::new(Producer::new(empty), Consumer::new(completed), shares);
        let shared = Arc::new(shared);
        fill(&receiving, &shared, 0..count);
        let arrivals = Arrivals::new(
            receiving.shared(),
            Consumer::new(rx),
            shared.clone(),
            device.clone(),
        );
        let frames = Frames::new(sending[0].own(), 0, Producer::new(tx), shared, device);
        let mac = OwnMac::new(home.mac);
        let link = Link {
            index: 1,
            mac: Some(home.mac),
            mtu: MTU,
            mtu_6: None,
            is_up: true,
            below: Below::Itself,
            program: Attached::Nothing,
        };
        let roads = Box::new(Direct);
        let ways = Ways::new(home, mac.clone(), &link, roads);
        let limits = Limits {
            rx_queue: arrivals.capacity(),
            ..udp.limits
        };
        let halves = Halves {
            rx: XdpRx::new(udp.rx, arrivals, home, mac, true),
            tx: XdpTx::new(udp.tx, ways, frames),
            limits,
        };
        Ok((halves, side))
    }

    fn carry_to(&mut self, other: &mut Self) {
        self.tx.available(u32::MAX);
        while let Some(desc) = self.tx.pop() {
            assert!(!desc.continues(), "a frame has one piece");
            other.receive(&self.umem, desc);
            assert!(
                self.completion.push(desc.addr),
                "there is room for all frames"
            );
        }
        self.tx.release();
        self.completion.publish();
        other.fill.release();
        other.rx.publish();
    }

    fn receive(&mut self, from: &Umem, desc: Desc) {
        self.fill.available(1);
        let empty = self.fill.pop().expect("there are empty frames");
        let addr = empty + HEADROOM;
        from.copy_to(desc.addr, &self.umem, addr, desc.len);
        assert!(self.rx.push(Desc { addr, ..desc }), "there is room");
    }
}

/// The Ethernet address of the neighbour at an address.
fn mac_of(ip: Ipv4Addr) -> Mac {
    let [_, _, high, low] = ip.octets();
    [2, 0, 0, 0, high, low]
}

impl Device for Silent {
    fn kick(&self) -> Kicked {
        Kicked::Done
    }

    fn kick_fill(&self) {}

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn take_error(&self) -> bool {
        false
    }
}

impl Roads for Direct {
    fn road(&mut self, hop: IpAddr) -> std::io::Result<Option<Road>> {
        let IpAddr::V4(ip) = hop else {
            return Ok(None);
        };
        let neighbour = Neighbour {
            mac: Some(mac_of(ip)),
            is_idle: false,
        };
        Ok(Some(Road {
            hop,
            neighbour,
            mtu: None,
        }))
    }

    fn mtu(&mut self, _: IpAddr) -> std::io::Result<Option<u32>> {
        Ok(None)
    }

    fn change(&mut self) -> Option<Change> {
        None
    }
}
