//! Rows of the transports. `Auto` has the rows of `auto`, `shm` and `udp`, `Xdp` the rows of `xdp`
//! and `udp`, and `Dpdk` the rows of `dpdk` and `udp`.

use dunlin_core::transport::MAX_INLINE;
use dunlin_transport::shm::Options as ShmOptions;
use dunlin_transport::udp::{MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Options as UdpOptions};

use crate::options::{DpdkOptions, XdpOptions};
use crate::setting::{FieldOf, Lens, MICROS, Setting, Shape, US, Unit};

const fn shm(
    name: &'static str,
    unit: Unit,
    lens: Lens<ShmOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Shm(lens), meaning)
}

const fn udp(
    name: &'static str,
    unit: Unit,
    lens: Lens<UdpOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Udp(lens), meaning)
}

const fn xdp(
    name: &'static str,
    unit: Unit,
    lens: Lens<XdpOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Xdp(lens), meaning)
}

const fn dpdk(
    name: &'static str,
    unit: Unit,
    lens: Lens<DpdkOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Dpdk(lens), meaning)
}

pub(super) const AUTO: &[Setting] = &[Setting::new(
    "auto.remote",
    Unit::Remote,
    FieldOf::Auto(|auto| &mut auto.remote),
    "transport of an `auto` endpoint for peers that it does not reach by shared memory; its own \
     options, and those of `udp`, hold for it too",
)
.words(&["udp"])];

pub(super) const SHM: &[Setting] = &[
    shm(
        "shm.data_size",
        Unit::Bytes,
        |shm| &mut shm.data_size,
        "most data in one packet; two endpoints use the smaller of their values",
    )
    .within(1..=1 << 20),
    shm(
        "shm.cells",
        Unit::Count,
        |shm| &mut shm.cells,
        "cells of 64 bytes in each ring; a pair of endpoints takes 128 bytes a cell",
    )
    .within(64..=65_536)
    .shape(Shape::PowerOfTwo),
    shm(
        "shm.max_peers",
        Unit::Count,
        |shm| &mut shm.max_peers,
        "most peers of an endpoint; each needs descriptors",
    )
    .within(1..=4096),
    shm(
        "shm.trust_peer",
        Unit::Switch,
        |shm| &mut shm.trust_peer,
        "do not copy packets before they are validated, though other processes can change them",
    ),
    shm(
        "shm.by_reference",
        Unit::Bytes,
        |shm| &mut shm.by_reference,
        "data of this length or more is copied once, from the sender's memory",
    )
    .within(0..=1 << 30),
    shm(
        "shm.map_limit",
        Unit::Bytes,
        |shm| &mut shm.map_limit,
        "memory of one peer that is mapped for such copies; data beyond it comes through the ring",
    )
    .within(0..=1 << 47),
    shm(
        "shm.map_limit_process",
        Unit::Bytes,
        |shm| &mut shm.map_limit_process,
        "memory that is mapped for such copies, for all peers of all endpoints of the process",
    )
    .within(0..=1 << 47),
];

pub(super) const UDP: &[Setting] = &[
    udp("udp.ip", Unit::Ip, |udp| &mut udp.ip, "address to bind").follow("nexus.listen"),
    udp(
        "udp.port",
        Unit::Count,
        |udp| &mut udp.port,
        "port to bind, for programs with one endpoint; 0: the system chooses",
    )
    .within(0..=0xffff),
    udp(
        "udp.advertise",
        Unit::Ip,
        |udp| &mut udp.advertise,
        "address that peers get, if it is not the bound one",
    )
    .words(&["none"])
    .follow("nexus.advertise"),
    udp(
        "udp.allow_peers",
        Unit::Networks,
        |udp| &mut udp.allow_peers,
        "networks to which packets may go although the peer has connected from another address; \
         it must first prove that packets reach it there",
    )
    .words(&["none"])
    .follow("nexus.allow_peers"),
    udp(
        "udp.data_size",
        Unit::Bytes,
        |udp| &mut udp.data_size,
        "most data in one packet; two endpoints use the smaller of their values",
    )
    .within(1..=MAX_DATAGRAM_BYTES as u64 - MAX_INLINE as u64),
    udp(
        "udp.loopback_data_size",
        Unit::Bytes,
        |udp| &mut udp.loopback_data_size,
        "most data in one packet for peers at a loopback address; at most what receive buffers \
         hold",
    )
    .within(1..=MAX_DATAGRAM_BYTES as u64 - MAX_INLINE as u64),
    udp(
        "udp.datagram",
        Unit::Bytes,
        |udp| &mut udp.datagram_bytes,
        "size of datagrams that hold several packets; `auto`: as much as fits the link",
    )
    .within(MIN_DATAGRAM_BYTES as u64..=MAX_DATAGRAM_BYTES as u64)
    .words(&["auto"]),
    udp(
        "udp.pack",
        Unit::Switch,
        |udp| &mut udp.pack,
        "several packets to one peer share a datagram",
    ),
    udp(
        "udp.gso",
        Unit::Switch,
        |udp| &mut udp.gso,
        "several datagrams to one peer are handed to the kernel as one (UDP_SEGMENT)",
    ),
    udp(
        "udp.gro",
        Unit::Switch,
        |udp| &mut udp.gro,
        "several datagrams may be received as one (UDP_GRO)",
    ),
    udp(
        "udp.ecn",
        Unit::Word,
        |udp| &mut udp.ecn,
        "whether to read congestion marks of the network; `auto`: unless bound to loopback",
    )
    .words(&["auto", "on", "off"]),
    udp(
        "udp.busy_poll",
        // The kernel counts in microseconds, and so does the field.
        Unit::Time {
            plain: US,
            field: US,
        },
        |udp| &mut udp.busy_poll_us,
        "how long the kernel polls the device when no packet waits (SO_BUSY_POLL); 0: never",
    )
    .within(0..=1_000_000),
    udp(
        "udp.rcvbuf",
        Unit::Bytes,
        |udp| &mut udp.rcvbuf_bytes,
        "receive buffer to ask for; the kernel may grant less (net.core.rmem_max)",
    )
    .within(4096..=1 << 30),
    udp(
        "udp.sndbuf",
        Unit::Bytes,
        |udp| &mut udp.sndbuf_bytes,
        "send buffer to ask for; the kernel may grant less (net.core.wmem_max)",
    )
    .within(4096..=1 << 30),
    udp(
        "udp.line_rate",
        Unit::Rate,
        |udp| &mut udp.line_rate,
        "rate of the link, from which congestion control starts and which it never exceeds",
    )
    .within(1_000_000..=1_000_000_000_000),
    udp(
        "udp.base_rtt",
        MICROS,
        |udp| &mut udp.base_rtt,
        "round trip through the empty network, if it is known; then `udp.line_rate` also limits \
         large responses; 0: sessions measure it",
    )
    .within(0..=1_000_000_000),
    udp(
        "udp.max_peers",
        Unit::Count,
        |udp| &mut udp.max_peers,
        "most peers at a time",
    )
    .within(1..=1 << 20),
];

pub(super) const XDP: &[Setting] = &[
    xdp(
        "xdp.interface",
        Unit::Interface,
        |xdp| &mut xdp.interface,
        "interface whose packets bypass the kernel's network stack",
    )
    .words(&["none"]),
    xdp(
        "xdp.queue",
        Unit::Count,
        |xdp| &mut xdp.queue,
        "the first of its queues; packets of other queues come through the kernel",
    )
    .within(0..=4095),
    xdp(
        "xdp.queues",
        Unit::Count,
        |xdp| &mut xdp.queues,
        "how many queues an endpoint has, from `xdp.queue` on; each takes `xdp.umem`",
    )
    .within(1..=64),
    xdp(
        "xdp.mode",
        Unit::Word,
        |xdp| &mut xdp.mode,
        "where the kernel runs the program that steers packets: after the driver, or in it; \
         for the latter i40e, ixgbe, igb, igc, ice and ena take the link down and up",
    )
    .words(&["generic", "native"]),
    xdp(
        "xdp.umem",
        Unit::Bytes,
        |xdp| &mut xdp.umem_bytes,
        "memory for the frames of a queue, which the kernel pins: at least 512 KiB for each of \
         `xdp.endpoints`, so 2 MiB for 4; less if `ulimit -l` permits less",
    )
    .within(1 << 20..=1 << 32),
    xdp(
        "xdp.endpoints",
        Unit::Count,
        |xdp| &mut xdp.endpoints,
        "most endpoints of a process at one queue; each has the same share of the memory for \
         frames, at least 512 KiB",
    )
    .within(1..=64),
    xdp(
        "xdp.zero_copy",
        Unit::Switch,
        |xdp| &mut xdp.zero_copy,
        "the driver uses the frames in place; needs native mode and a driver that can, and does \
         not go with `xdp.setup`",
    ),
    xdp(
        "xdp.vlan",
        Unit::Count,
        |xdp| &mut xdp.vlan,
        "number of the VLAN whose tag frames have; 0: none; `auto`: that of the interface",
    )
    .within(0..=4094)
    .words(&["auto"]),
    xdp(
        "xdp.partial_sums",
        Unit::Switch,
        |xdp| &mut xdp.partial_sums,
        "accept packets whose checksum covers only the pseudo header, as neighbours in the same \
         kernel send them, or is missing over IPv4; off: also without `udp.gro`, with which the \
         kernel itself makes such packets in front of bridges and bonds",
    ),
    xdp(
        "xdp.setup",
        Unit::Path,
        |xdp| &mut xdp.setup,
        "socket of `dunlin xdp-setup`, which opens AF_XDP sockets for processes without privilege, \
         but none for `xdp.zero_copy`; none: the process opens them itself",
    )
    .words(&["none"]),
];

pub(super) const DPDK: &[Setting] = &[dpdk(
    "dpdk.device",
    Unit::Device,
    |dpdk| &mut dpdk.device,
    "device of DPDK and its address, `DEVICE;ip=ADDRESS/BITS[,gw=ADDRESS][,vlan=N][,mtu=BYTES]\
     [,packets=N][,lend=BYTES][,queues=N][;ARGUMENTS]`",
)
.words(&["none"])];
