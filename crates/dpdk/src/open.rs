//! Opens an endpoint: the device, unless the process has opened it for an earlier endpoint, and a
//! port of UDP at its address.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use dunlin_core::transport::{Halves, Limits, Transport};
use dunlin_packet::MAX_HEADER;
use dunlin_transport::udp::{self, Book};

use crate::device::{self, Parts};
use crate::eal;
use crate::ffi::Wish;
use crate::keeper;
use crate::port::Port;
use crate::receive::DpdkRx;
use crate::site::Site;
use crate::transmit::DpdkTx;

/// Descriptors of each queue to ask for.
const DESCRIPTORS: u32 = 1024;

/// The open devices of this process.
static PORTS: Mutex<Vec<&'static Port>> = Mutex::new(Vec::new());

/// Options of one `dpdk` endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The device and its place in its network, in the form of [`Site`]. There is no default.
    pub device: String,
    /// The port, the sizes, the packing and the limits of peers. The address is the device's,
    /// and options of sockets have no effect.
    pub udp: udp::Options,
}

/// DPDK as a transport.
#[derive(Clone, Copy, Debug)]
pub struct Dpdk;

impl Transport for Dpdk {
    type Rx = DpdkRx;
    type Tx = DpdkTx;
}

impl Dpdk {
    /// Opens an endpoint. The first endpoint of a process starts DPDK, and the first of a device
    /// opens that.
    ///
    /// # Errors
    /// `InvalidInput` without a device, or if the device is open with other settings; `NotFound`
    /// without `libdunlin_dpdk.so`; `OutOfMemory` without huge pages; `AddrInUse` if the port is
    /// taken; otherwise the last lines of DPDK's log.
    pub fn open(options: &Options) -> io::Result<Halves<DpdkRx, DpdkTx>> {
        let site = site_of(&options.device)?;
        let port = port_of(&site)?;
        let seat = Arc::new(port.seat(options.udp.port)?);
        let home = *seat.inbox.home();
        let around = u32::try_from(home.ip_and_udp()).expect("48");
        let longest = u32::from(port.mtu()).saturating_sub(around);
        let book = Book::new(home.address, longest, &options.udp)?;
        let rate = options.udp.line_rate;
        let limits = Limits {
            data_size: book.data_size(),
            rx_queue: port.rx_descriptors(),
            line_rate: port.bytes_per_second().map_or(rate, |its| its.min(rate)),
        };
        Ok(Halves {
            rx: DpdkRx::new(seat.clone()),
            tx: DpdkTx::new(seat, book, longest, limits.line_rate, options.udp.base_rtt),
            limits,
        })
    }
}

/// The device of a site, which the first endpoint opens.
fn port_of(site: &Site) -> io::Result<&'static Port> {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let open = ports.iter().find(|port| port.site().name() == site.name());
    if let Some(port) = open {
        if port.site() == site {
            return Ok(port);
        }
        let its = port.site();
        return Err(invalid(format!(
            "the device is open with other settings: {its:?}, not {site:?}"
        )));
    }
    let port: &'static Port = Box::leak(Box::new(Port::new(site.clone(), device_of(site)?)));
    keeper::keep(port);
    ports.push(port);
    Ok(port)
}

/// Reads a site.
pub(crate) fn site_of(device: &str) -> io::Result<Site> {
    device.parse().map_err(invalid)
}

/// Opens the device of a site, after DPDK if this is the first.
pub(crate) fn device_of(site: &Site) -> io::Result<Parts> {
    let wish = Wish {
        packets: site.packets,
        descriptors: DESCRIPTORS,
        mtu: site.mtu,
        around: u16::try_from(MAX_HEADER).expect("66"),
        queues: site.queues,
        groups: u8::from(site.ip.is_ipv6()),
        lends: u8::from(site.lend > 0),
    };
    let functions = eal::start(&site.arguments, keeper::run)?;
    device::open(functions, &site.device, wish)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
