//! The simulated transport: both halves of one port, as the endpoint sees them (design §12).
//!
//! Invariant: the halves of a killed process do nothing. Called by the endpoint.

use std::borrow::Cow;
use std::rc::Rc;

use dunlin_core::transport::{
    Frame, Halves, Lane, Limits, MAX_INLINE, Path, PeerId, RX_BURST, Rx, Transport, Tx, TxItem,
    TxSeq,
};
use dunlin_core::{Account, BytesPerSec, CloseReason, Config, Endpoint, Nanos, Report, Scheme};
use dunlin_wire::HEADER_LEN;

use crate::world::clock::SimClock;
use crate::world::net::channels::{Channels, NOWHERE};
use crate::world::net::fact::FrameFact;
use crate::world::net::port::data_len;
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
    /// Memory for the items of a burst with staged packets, which later bursts reuse.
    row: Vec<TxItem>,
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
    /// Hands items over to the NIC.
    fn hand_over(&mut self, items: &[TxItem]) -> TxSeq {
        let mut net = self.half.net.borrow_mut();
        let net = &mut *net;
        let (port, life) = (self.half.port, self.half.life);
        if net.ports[port.0].life != life {
            return TxSeq(items.len() as u64);
        }
        if items.is_empty() {
            // It takes no time, and draws no random delay.
            return net.ports[port.0].handed();
        }
        let bytes = items.iter().map(data_len).sum();
        if net.record.is_on() {
            let at = self.half.clock.world_time();
            for item in items {
                net.record.note(at, port, &FrameFact::Hands(item));
            }
        }
        self.half.charge(&net.config.cpu, items.len(), bytes);
        let (least, most) = net.config.dma;
        let delay = match least == most {
            true => least,
            false => Nanos(net.rng.between(least.0, most.0)),
        };
        let due = self.half.clock.world_time() + delay;
        let reached = self.reached(items);
        let frame_bytes = net.config.frame_bytes;
        let (end, due) = net.ports[port.0].hand_over(&reached, due, frame_bytes);
        let port = u32::try_from(port.0).expect("ports are peers, which have 32-bit numbers");
        net.events.push(due, Event::Dma(port, life));
        end
    }

    /// The peers that the endpoint knows.
    pub(crate) const fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Returns the packets. Those whose peers are gone get an address without a process.
    fn reached<'a>(&self, items: &'a [TxItem]) -> Cow<'a, [TxItem]> {
        let reaches = |item: &TxItem| self.channels.reaches(item.peer);
        if items.iter().all(reaches) {
            return Cow::Borrowed(items);
        }
        let reroute = |item: &TxItem| match reaches(item) {
            true => *item,
            false => TxItem {
                peer: NOWHERE,
                ..*item
            },
        };
        Cow::Owned(items.iter().map(reroute).collect())
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
        self.hand_over(items)
    }

    fn lane(&self) -> usize {
        MAX_INLINE
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        let mut row = std::mem::take(&mut self.row);
        let staged = lane.packets().iter();
        row.clear();
        row.extend(staged.filter_map(|packet| lane.to_item(*packet)));
        row.extend_from_slice(items);
        assert_eq!(
            row.len(),
            lane.len() + items.len(),
            "a packet is too long for the lane"
        );
        let end = self.hand_over(&row);
        self.row = row;
        end
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
