//! The sending half: packets to neighbours leave in frames of ours, all others through the socket.
//!
//! All packets, small or large, are copied into frames, so a burst is done when it returns. In copy
//! mode, which every device has, the driver would copy them otherwise. Packets to one peer share
//! datagrams as over udp (rule W11), and a burst is one system call.
//!
//! A packet goes through the kernel's socket if it does not fit a frame, while the neighbour's
//! address is unknown or old, while the interface is down, and to peers that are reached otherwise,
//! such as those of this host. Causes are counted. Called by the event loop, and by `connect`.

mod burst;
mod filling;
pub(crate) mod frames;

use dunlin_core::transport::{
    LANE_LINES, Lane, LanePacket, Messages, Path, PeerId, Tx, TxItem, TxSeq,
};
use dunlin_transport::counters::Counters;
use dunlin_transport::lent::data_of;
use dunlin_transport::udp::UdpTx;

use crate::ways::{FALLS, Fall, Form, Ways};
use burst::Burst;
use frames::{Frames, Open};

/// The most packets that are sorted by peer at once.
const WINDOW: usize = 1024;
const _: () = assert!(
    WINDOW >= LANE_LINES,
    "a lane fits the list of those that fall"
);
/// Longest packet without data in a msgbuf that is copied and summed up word by word.
const SHORT: usize = 256;
/// Bursts between two looks at changes of roads.
const LOOK_EVERY: u32 = 64;

/// Names of the counters of this half, before those of [`FALLS`]. The last three count the packets
/// that left in frames, all of which were copied, by the cause: they are short and do not lie in a
/// msgbuf; they share a datagram; or their msgbuf lies outside the region of frames.
pub(crate) const DETAILS: [&str; 6] = [
    "tx_datagrams",
    "tx_bad_entries",
    "tx_refused_entries",
    "tx_copied_short",
    "tx_copied_packed",
    "tx_copied_msgbuf",
];

/// The sending half of an `xdp` endpoint.
#[derive(Debug)]
pub struct XdpTx {
    pub(crate) ways: Ways,
    frames: Frames,
    /// Packets of this window that the kernel sends.
    fallen: Vec<TxItem>,
    fallen_staged: Vec<LanePacket>,
    given: TxSeq,
    /// Bursts until the next look at changes.
    look_in: u32,
    falls: [u64; FALLS.len()],
    /// Packets that left in a datagram with others, and those that left alone from a msgbuf. All
    /// other packets in frames are short, and their path keeps no further counters.
    packed: u64,
    alone: u64,
    counters: Counters,
    /// The last field, so that its port is free only after the address has left the map.
    pub(crate) udp: UdpTx,
}

impl XdpTx {
    pub(crate) fn new(udp: UdpTx, ways: Ways, frames: Frames) -> Self {
        Self {
            udp,
            ways,
            frames,
            fallen: Vec::with_capacity(WINDOW),
            fallen_staged: Vec::with_capacity(WINDOW),
            given: TxSeq(0),
            look_in: 0,
            falls: [0; FALLS.len()],
            packed: 0,
            alone: 0,
            counters: Counters::default(),
        }
    }

    /// The counters of this half, without those of the socket.
    pub(crate) fn own_counters(&self) -> Counters {
        Counters {
            syscalls: self.frames.met().calls,
            ..self.counters
        }
    }

    /// Counters of this half: datagrams that left in frames, entries that one side of the rings
    /// refused, packets that left in frames, by the cause of their copy, and packets that the
    /// kernel sent, by cause.
    pub fn details(&self) -> Vec<(&'static str, u64)> {
        let mut details = Vec::new();
        self.show_details(&mut |name, count| details.push((name, count)));
        details
    }

    /// Shows the counters of [`DETAILS`] and of [`FALLS`].
    pub(crate) fn show_details(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let met = self.frames.met();
        let own = [
            met.datagrams,
            met.bad + u64::from(self.frames.is_broken()),
            self.frames.device().statistics().tx_invalid,
            self.counters.tx_packets - self.packed - self.alone,
            self.packed,
            self.alone,
        ];
        let names = DETAILS.into_iter().chain(FALLS);
        let counts = own.into_iter().chain(self.falls);
        names
            .zip(counts)
            .for_each(|(name, count)| show(name, count));
    }

    /// Sends these packets of a lane, in order.
    #[inline]
    pub(crate) fn send_staged(&mut self, lane: &Lane, staged: &[LanePacket]) -> TxSeq {
        self.send_all(Burst {
            lane: Some(lane),
            staged,
            items: &[],
        })
    }

    fn send_all(&mut self, burst: Burst<'_>) -> TxSeq {
        let short = self.send_short(burst);
        for first in (short..burst.len()).step_by(WINDOW) {
            let end = burst.len().min(first + WINDOW);
            self.send_window(burst, first, end);
        }
        self.finish(burst.len())
    }

    /// Makes the kernel send, and counts the packets of a burst. All that can wait follows the
    /// call of the kernel.
    #[inline]
    fn finish(&mut self, packets: usize) -> TxSeq {
        if !self.frames.kick() {
            self.ways.on_down();
            self.look_in = 0;
        }
        self.given.0 += packets as u64;
        self.look_when_due();
        self.given
    }

    /// Sends the only packet of a lane if it fits its line, even if it could share a datagram.
    /// False if it must take the general path.
    #[inline]
    fn send_line(&mut self, lane: &Lane, packet: LanePacket) -> bool {
        let len = packet.size();
        let form = self.ways.ready(packet.peer());
        let Some(form) = form.filter(|form| (1..=form.line).contains(&len)) else {
            return false;
        };
        let is_sent = self.frames.send_line(form.stamp(len), lane.line(packet));
        self.counters.tx_packets += u64::from(is_sent);
        self.counters.tx_bytes += if is_sent { len as u64 } else { 0 };
        is_sent
    }

    /// Sends the first packets of a lane, while each leaves in a frame of its own and fits a line.
    /// A lone packet does, even if it could share a datagram. Returns their number.
    #[inline]
    fn send_short(&mut self, burst: Burst<'_>) -> usize {
        let Some(lane) = burst.lane else {
            return 0;
        };
        let is_lone = burst.len() == 1;
        let mut rest = burst.staged;
        while let Some(&first) = rest.first() {
            let form = self.ways.ready(first.peer());
            let Some(form) = form else {
                break;
            };
            let most = if is_lone { form.line } else { form.short };
            if !(1..=most).contains(&first.size()) {
                break;
            }
            let stamp = form.stamp(first.size());
            let count = self.frames.send_alike(stamp, lane, first, rest);
            if count == 0 {
                break;
            }
            self.counters.tx_packets += count as u64;
            self.counters.tx_bytes += (count * first.size()) as u64;
            rest = &rest[count..];
        }
        burst.staged.len() - rest.len()
    }

    /// Sends the packets with numbers from `first` to below `end`, one peer after the other. This
    /// is a function of its own, so that the loop over short packets that leave alone keeps its
    /// registers.
    #[inline(never)]
    fn send_window(&mut self, burst: Burst<'_>, first: usize, end: usize) {
        let peer = burst.peer(first);
        if (first..end).all(|index| burst.peer(index) == peer) {
            let done = self.send_packed(burst, peer, first..end);
            self.send_group(burst, peer, first + done..end);
        } else {
            self.send_groups(burst, first, end);
        }
        if !self.fallen.is_empty() || !self.fallen_staged.is_empty() {
            self.send_fallen(burst.lane);
        }
    }

    fn send_groups(&mut self, burst: Burst<'_>, first: usize, end: usize) {
        let mut order = [0_u64; WINDOW];
        let order = &mut order[..end - first];
        for (key, index) in order.iter_mut().zip(first..end) {
            *key = u64::from(burst.peer(index).0) << 32 | index as u64;
        }
        order.sort_unstable();
        let index = |key: &u64| (key & 0xFFFF_FFFF) as usize;
        for group in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let peer = burst.peer(index(&group[0]));
            self.send_group(burst, peer, group.iter().map(index));
        }
    }

    /// Sends packets to one peer.
    #[inline]
    fn send_group(
        &mut self,
        burst: Burst<'_>,
        peer: PeerId,
        mut indexes: impl Iterator<Item = usize>,
    ) {
        while let Some(index) = indexes.next() {
            match self.ways.take(peer) {
                Ok(form) => {
                    let mut form = *form;
                    self.send_in_frames(burst, &mut form, index, &mut indexes);
                    self.ways.keep_stamp(peer, &form);
                }
                Err(fall) => self.fall(burst, index, fall),
            }
        }
    }

    /// Sends the packet `first`, and those after it.
    #[inline]
    fn send_in_frames(
        &mut self,
        burst: Burst<'_>,
        form: &mut Form,
        first: usize,
        rest: &mut impl Iterator<Item = usize>,
    ) {
        let mut open = None;
        for index in std::iter::once(first).chain(rest) {
            if form.datagram == 0 {
                self.close_open(&mut open, form);
                if self.send_alone(burst, index, form) {
                    continue;
                }
            } else if let Some((line, len)) = burst.line(index, form.longest) {
                if self.make_room(len, form, &mut open)
                    && let Some(filling) = &mut open
                    && !self.frames.append_line(filling, line, len)
                {
                    self.discard(&mut open);
                }
                continue;
            }
            self.add(burst, index, form, &mut open);
        }
        self.close_open(&mut open, form);
    }

    /// Sends a short packet in a datagram of its own. False if it must take the general path,
    /// because it is long or unusual, or no frame is free.
    #[inline]
    fn send_alone(&mut self, burst: Burst<'_>, index: usize, form: &mut Form) -> bool {
        let packet = burst.packet(index);
        let bytes = match packet.inline {
            Some(bytes) if packet.data.is_empty() => bytes,
            _ => return false,
        };
        if bytes.is_empty() || bytes.len() > SHORT.min(form.longest) {
            return false;
        }
        let headers = form.stamp(bytes.len());
        let is_sent = self.frames.send(headers, bytes);
        self.counters.tx_packets += u64::from(is_sent);
        self.counters.tx_bytes += if is_sent { bytes.len() as u64 } else { 0 };
        is_sent
    }

    /// Adds a packet to the open datagram, or to a new one.
    #[inline]
    fn add(&mut self, burst: Burst<'_>, index: usize, form: &mut Form, open: &mut Option<Open>) {
        let packet = burst.packet(index);
        let inline = packet.inline.unwrap_or_default();
        let len = inline.len() + packet.data.len();
        if packet.inline.is_none() || len == 0 || len > form.longest {
            // The socket counts packets that no transport can send.
            return self.fall(burst, index, Fall::Long);
        }
        // SAFETY: we send for the endpoint that owns the msgbuf, and copy the bytes at once.
        let Some(data) = (unsafe { data_of(packet.data) }) else {
            self.counters.tx_dropped_stale += 1;
            return;
        };
        if self.make_room(len, form, open)
            && let Some(filling) = open
            && !self.frames.append(filling, inline, data)
        {
            self.discard(open);
        }
    }

    /// Leaves a packet to the kernel.
    fn fall(&mut self, burst: Burst<'_>, index: usize, why: Fall) {
        self.falls[why as usize] += 1;
        // When the kernel has sent the packet, it may already report a change.
        if matches!(why, Fall::NoNeighbour | Fall::Confirm | Fall::Down) {
            self.look_in = 0;
        }
        match burst.staged.get(index) {
            Some(packet) => self.fallen_staged.push(*packet),
            None => self.fallen.push(burst.items[index - burst.staged.len()]),
        }
    }

    fn send_fallen(&mut self, lane: Option<&Lane>) {
        match lane {
            Some(lane) => self
                .udp
                .send_staged(lane, &self.fallen_staged, &self.fallen),
            None => self.udp.burst(&self.fallen),
        };
        self.fallen_staged.clear();
        self.fallen.clear();
    }

    #[inline]
    fn look_when_due(&mut self) {
        if self.look_in == 0 {
            self.ways.look();
            self.look_in = LOOK_EVERY;
        }
        self.look_in -= 1;
    }

    /// Makes the next call look at changes, which may have come during a sleep.
    pub(crate) fn on_doubt(&mut self) {
        self.look_in = 0;
    }
}

impl Tx for XdpTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.send_all(Burst {
            lane: None,
            staged: &[],
            items,
        })
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        self.given
    }

    fn lane(&self) -> usize {
        self.udp.lane()
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        self.send_all(Burst {
            lane: Some(lane),
            staged: lane.packets(),
            items,
        })
    }

    #[inline]
    fn send_lone<'a>(&mut self, lane: &'a Lane, packet: LanePacket, _: impl Messages<'a>) -> TxSeq {
        match self.send_line(lane, packet) {
            true => self.finish(1),
            false => self.send(lane, &[]),
        }
    }

    fn path(&self, peer: PeerId) -> Option<Path> {
        self.udp.path(peer)
    }

    #[inline]
    fn settle(&mut self) {
        if !self.frames.kick() {
            self.ways.on_down();
            self.look_in = 0;
        }
        self.look_when_due();
    }

    fn flush(&mut self) {
        self.frames.kick();
        self.udp.flush();
    }
}
