//! The simulated transport: both halves of one port, as the endpoint sees them (design §12).
//!
//! Invariant: the halves of a killed process do nothing. Called by the endpoint.

use std::rc::Rc;

use dunlin_core::transport::{
    Begun, Frame, Halves, Lane, LanePacket, Limits, Messages, Path, PeerId, RX_BURST, Rx,
    Transport, Tx, TxItem, TxSeq,
};
use dunlin_core::{Account, BytesPerSec, CloseReason, Config, Endpoint, Nanos, Report, Scheme};
use dunlin_wire::HEADER_LEN;

use crate::world::clock::SimClock;
use crate::world::net::channels::{Channels, NOWHERE};
use crate::world::net::fact::FrameFact;
use crate::world::net::packet::{Packet, StagedPackets, add_alike, add_listed};
use crate::world::net::{CpuCosts, Event, NetHandle, PortId};

/// The transport, whose halves are [`SimRx`] and [`SimTx`].
#[derive(Clone, Copy, Debug)]
pub struct SimTransport;

impl Transport for SimTransport {
    type Rx = SimRx;
    type Tx = SimTx;
}

/// The receiving half.
#[derive(Debug)]
pub struct SimRx {
    half: Half,
    /// Whether the next burst must find nothing.
    looks_away: bool,
    burst: Vec<(Vec<u8>, bool)>,
}

/// The sending half.
#[derive(Debug)]
pub struct SimTx {
    half: Half,
    channels: Channels,
    /// The packets of a burst that is being handed over.
    row: Vec<Packet>,
}

#[derive(Clone, Debug)]
struct Half {
    net: NetHandle,
    port: PortId,
    life: u32,
    clock: SimClock,
}

/// An endpoint of a simulated process.
pub type SimEndpoint<App> = Endpoint<SimTransport, SimClock, App>;

/// Takes an endpoint's reports, for a run that ends sessions itself. The endpoint has no control
/// connection over which it could ask whether a peer is alive. So every such question is answered
/// with "nothing is known", as for a peer of an older release, and only silence counts.
///
/// # Panics
/// If a session has ended because the endpoint broke one of its own laws.
pub fn take_reports<App>(rpc: &mut SimEndpoint<App>) {
    while let Some(report) = rpc.lifecycle().take_report() {
        match report {
            Report::Question(question) => rpc
                .lifecycle()
                .on_account(question.session, &Account::Nothing),
            Report::Closed(closed) => {
                let is_broken = matches!(closed.reason, CloseReason::Inconsistent(_));
                assert!(!is_broken, "{:?} ends: {:?}", closed.session, closed.reason);
            }
            Report::Challenged(_) => {}
        }
    }
}

impl SimTransport {
    /// Makes the endpoint of a process that starts on `port`. Frames for an earlier process on that
    /// port are gone.
    pub fn endpoint<App>(
        net: &NetHandle,
        port: PortId,
        app: App,
        config: Config,
        seed: u64,
    ) -> SimEndpoint<App> {
        let clock = net.borrow().clock(port);
        let halves = Self::open(net, port);
        Endpoint::new(app, clock, halves, config, seed, None, port.endpoint())
            .expect("the options were checked with the plan or the scenario")
    }

    /// Opens `port` for a process. Frames for an earlier process on that port are gone.
    pub fn open(net: &NetHandle, port: PortId) -> Halves<SimRx, SimTx> {
        let mut inner = net.borrow_mut();
        inner.ports[port.0].start();
        let half = Half {
            net: Rc::clone(net),
            port,
            life: inner.ports[port.0].life,
            clock: inner.clock(port),
        };
        let channels = Channels::new(port.0, Rc::clone(&inner.descriptors));
        let limits = Limits {
            data_size: inner.config.data_size,
            rx_queue: inner.config.rx_queue,
            line_rate: inner.config.line_rate,
        };
        let rx = SimRx {
            half: half.clone(),
            looks_away: false,
            burst: Vec::with_capacity(RX_BURST),
        };
        Halves {
            rx,
            tx: SimTx {
                half,
                channels,
                row: Vec::new(),
            },
            limits,
        }
    }
}

impl SimTx {
    /// Hands the packets of the row over to the NIC.
    fn hand_over(&mut self, staged: StagedPackets) -> TxSeq {
        let mut net = self.half.net.borrow_mut();
        let net = &mut *net;
        let (port, life) = (self.half.port, self.half.life);
        let row = &mut self.row;
        if net.ports[port.0].life != life {
            let end = TxSeq(row.len() as u64);
            row.clear();
            return end;
        }
        if row.is_empty() {
            // It takes no time, and draws no random delay.
            return net.ports[port.0].handed();
        }
        let bytes = row.iter().map(Packet::data_len).sum();
        if net.record.is_on() {
            let at = self.half.clock.world_time();
            for packet in &*row {
                net.record.note(at, port, &FrameFact::Hands(packet));
            }
            net.record.count_staged(staged);
        }
        self.half.charge(&net.config.cpu, row.len(), bytes);
        let (least, most) = net.config.dma;
        let delay = match least == most {
            true => least,
            false => Nanos(net.rng.between(least.0, most.0)),
        };
        let due = self.half.clock.world_time() + delay;
        // Packets whose peers are gone get an address without a process.
        let reaches = |packet: &&mut Packet| self.channels.reaches(packet.item.peer);
        for packet in row.iter_mut().filter(|packet| !reaches(packet)) {
            packet.item.peer = NOWHERE;
        }
        let how = (net.config.frame_bytes, net.config.hand_over.at_once);
        let (end, due) = net.ports[port.0].hand_over(row.drain(..), due, how);
        let port = u32::try_from(port.0).expect("ports are peers, which have 32-bit numbers");
        net.events.push(due, Event::Dma(port, life));
        end
    }

    /// The peers that the endpoint knows.
    pub(crate) const fn channels(&self) -> &Channels {
        &self.channels
    }

    /// The peers, for the handshake to change.
    pub(crate) const fn channels_mut(&mut self) -> &mut Channels {
        &mut self.channels
    }
}

impl SimRx {
    /// Makes the next burst find nothing, as if it had been called a moment earlier.
    pub fn look_away(&mut self) {
        self.looks_away = true;
    }
}

impl Rx for SimRx {
    fn burst(&mut self) -> usize {
        let mut net = self.half.net.borrow_mut();
        net.spare
            .extend(self.burst.drain(..).map(|(bytes, _)| bytes));
        let away = std::mem::take(&mut self.looks_away);
        if away || net.ports[self.half.port.0].life != self.half.life {
            return 0;
        }
        let rx = &mut net.ports[self.half.port.0].rx;
        let count = rx.len().min(RX_BURST);
        self.burst.extend(rx.drain(..count));
        let bytes: usize = self.burst.iter().map(|(bytes, _)| bytes.len()).sum();
        self.half.charge(&net.config.cpu, count, bytes);
        count
    }

    fn begin(&mut self) -> Begun {
        match self.burst() {
            0 => Begun::Nothing,
            1 => Begun::One,
            count => Begun::Unfinished(u32::try_from(count).expect("a burst is short")),
        }
    }

    fn finish(&mut self, begun: u32) -> usize {
        begun as usize
    }

    fn first(&self) -> Option<&[u8]> {
        self.lined_up(0).next()
    }

    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let rest = self.burst.get(first..).unwrap_or_default();
        let marked = rest.iter().position(|(_, congestion)| *congestion);
        let plain = &rest[..marked.unwrap_or(rest.len())];
        plain.iter().map(|(bytes, _)| bytes.as_slice())
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let (bytes, congestion) = &self.burst[index];
        Frame {
            bytes,
            congestion: *congestion,
            elsewhere: None,
        }
    }
}

impl Tx for SimTx {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.row.extend(items.iter().copied().map(Packet::from));
        self.hand_over(StagedPackets::default())
    }

    fn lane(&self) -> usize {
        self.half.net.borrow().config.hand_over.longest_staged
    }

    fn takes_alike(&self, _packet: LanePacket) -> bool {
        self.half.net.borrow().config.hand_over.rows
    }

    fn send_alike<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        if !self.takes_alike(packet) {
            return self.send(lane, &[]);
        }
        let staged = add_alike(lane, packet, messages, &mut self.row);
        self.hand_over(staged)
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        let staged = add_listed(lane, &mut self.row);
        self.row.extend(items.iter().copied().map(Packet::from));
        self.hand_over(staged)
    }

    /// The path to a peer, computed from the rates and latencies of the fabric. The round trip is
    /// the time for a full packet and its CR.
    fn path(&self, peer: PeerId) -> Option<Path> {
        let net = self.half.net.borrow();
        let config = &net.config;
        let header = u32::try_from(HEADER_LEN).unwrap_or(u32::MAX) + config.frame_overhead;
        let both = 2 * header + config.data_size;
        let own = self.half.port;
        let is_near = net.ports.get(peer.0 as usize).is_none_or(|port| {
            net.wiring.rack_of(port.host) == net.wiring.rack_of(net.ports[own.0].host)
        });
        let (line, up) = (
            BytesPerSec(config.line_rate),
            BytesPerSec(config.fabric.uplink_rate),
        );
        // Between racks there are two more cables and two more switches each way.
        let (frames, hops) = match is_near {
            true => (line.time_of(2 * both), 1),
            false => (line.time_of(2 * both) + up.time_of(2 * both), 2),
        };
        let ways = config.cable.times(4 * hops) + config.fabric.latency.times(2 * (2 * hops - 1));
        Some(Path {
            line_rate: config.line_rate,
            base_rtt: match config.tells_base_rtt {
                true => frames + ways + config.dma.0.times(2),
                false => Nanos::ZERO,
            },
            scheme: Scheme::None,
        })
    }

    fn done(&mut self) -> TxSeq {
        let net = self.half.net.borrow();
        let port = &net.ports[self.half.port.0];
        // After a process was killed, the NIC has forgotten the frames that it was sending.
        if port.life == self.half.life {
            port.done
        } else {
            TxSeq(u64::MAX)
        }
    }

    fn flush(&mut self) {
        let mut net = self.half.net.borrow_mut();
        if net.ports[self.half.port.0].life == self.half.life {
            net.read_bursts(self.half.port, Nanos::MAX);
        }
    }
}

impl Half {
    fn charge(&self, cpu: &CpuCosts, packets: usize, bytes: usize) {
        let data = cpu.kilobyte.times(bytes as u64);
        self.clock
            .spend(cpu.packet.times(packets as u64) + Nanos(data.0 / 1024));
    }
}
