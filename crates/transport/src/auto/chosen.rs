//! The remote transport of an ordinary `auto` endpoint: UDP, or the one that the program or an
//! operator has named for peers of other hosts.
//!
//! With UDP, each burst and each look at a frame cost one comparison more than without the choice.
//! Another transport is behind trait objects. A program that names its transport at compile time
//! uses `Auto<R>`, which costs nothing. Called by the halves of `auto`, and by the crates of other
//! transports.

mod connect;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dunlin_core::transport::{
    Frame, Halves, Lane, LanePacket, Limits, Path, PeerId, Rx, Transport, Tx, TxItem, TxSeq,
};

use super::erased::{ErasedRx, ErasedTx, erase};
use super::remote::{Remote, offers_as_udp};
use crate::connect::Connect;
use crate::udp::{self, Udp, UdpRx, UdpTx};

/// UDP, or another transport that looks like UDP to its peers.
#[derive(Clone, Copy, Debug)]
pub struct Chosen;

/// The receiving half of the transport that was chosen.
#[derive(Debug)]
pub struct ChosenRx(RxKind);

/// The sending half of the transport that was chosen.
#[derive(Debug)]
pub struct ChosenTx(TxKind);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "an endpoint has one")]
enum RxKind {
    Udp(UdpRx),
    Other(Box<dyn ErasedRx>),
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "an endpoint has one")]
enum TxKind {
    Udp(UdpTx),
    Other(Box<dyn ErasedTx>),
}

/// A transport for peers of other hosts, with its options.
pub trait OpenRemote: fmt::Debug + Send + Sync {
    /// Opens an endpoint with these options of UDP, which replace those that the transport has.
    ///
    /// # Errors
    /// The transport cannot be opened.
    fn open(&self, udp: udp::Options) -> io::Result<OpenedRemote>;
}

/// Both halves of a transport for peers of other hosts.
#[derive(Debug)]
pub struct OpenedRemote(Halves<Box<dyn ErasedRx>, Box<dyn ErasedTx>>);

impl OpenedRemote {
    /// Takes the halves of the transport `R`. `label`: the name of an `auto` endpoint over it, for
    /// operators; at most eight letters.
    pub fn new<R: Remote<Rx: Send, Tx: Send> + 'static>(
        label: &'static str,
        halves: Halves<R::Rx, R::Tx>,
    ) -> Self {
        const {
            assert!(
                offers_as_udp::<R>(),
                "a remote transport offers as udp does"
            )
        };
        Self(erase::<R>(label, halves))
    }
}

/// The transport that an `auto` endpoint uses for peers of other hosts, in place of UDP. Two of
/// these are equal if one is a clone of the other.
///
/// ```
/// use std::io;
///
/// use dunlin_transport::auto::{OpenRemote, OpenedRemote, Options, RemoteOptions};
/// use dunlin_transport::udp::{self, Udp};
///
/// /// UDP without packing. `dunlin_xdp::Options` and `dunlin_dpdk::Options` are such options too.
/// #[derive(Debug)]
/// struct Unpacked;
///
/// impl OpenRemote for Unpacked {
///     fn open(&self, udp: udp::Options) -> io::Result<OpenedRemote> {
///         let halves = Udp::open(&udp::Options { pack: false, ..udp })?;
///         Ok(OpenedRemote::new::<Udp>("unpacked", halves))
///     }
/// }
///
/// // An endpoint gets these by `builder.transport(|auto: &mut Options| …)`.
/// let mut auto = Options::default();
/// auto.remote = Some(RemoteOptions::new(Unpacked));
/// ```
#[derive(Clone, Debug)]
pub struct RemoteOptions(Arc<dyn OpenRemote>);

impl RemoteOptions {
    /// The transport with these options.
    pub fn new(options: impl OpenRemote + 'static) -> Self {
        Self(Arc::new(options))
    }
}

impl PartialEq for RemoteOptions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RemoteOptions {}

impl Transport for Chosen {
    type Rx = ChosenRx;
    type Tx = ChosenTx;
}

impl Chosen {
    /// Opens UDP, or the other transport.
    pub(super) fn open(
        other: Option<&RemoteOptions>,
        udp: udp::Options,
    ) -> io::Result<Halves<ChosenRx, ChosenTx>> {
        match other {
            None => {
                let Halves { rx, tx, limits } = Udp::open(&udp)?;
                Ok(halves(RxKind::Udp(rx), TxKind::Udp(tx), limits))
            }
            Some(RemoteOptions(other)) => {
                let Halves { rx, tx, limits } = other.open(udp)?.0;
                Ok(halves(RxKind::Other(rx), TxKind::Other(tx), limits))
            }
        }
    }
}

const fn halves(rx: RxKind, tx: TxKind, limits: Limits) -> Halves<ChosenRx, ChosenTx> {
    Halves {
        rx: ChosenRx(rx),
        tx: ChosenTx(tx),
        limits,
    }
}

impl Remote for Chosen {
    fn looks_are_cheap(rx: &ChosenRx) -> bool {
        match &rx.0 {
            RxKind::Udp(rx) => Udp::looks_are_cheap(rx),
            RxKind::Other(rx) => rx.looks_are_cheap(),
        }
    }

    #[inline]
    fn send_staged(tx: &mut ChosenTx, lane: &Lane, packets: &[LanePacket]) -> TxSeq {
        match &mut tx.0 {
            TxKind::Udp(tx) => Udp::send_staged(tx, lane, packets),
            TxKind::Other(tx) => tx.send_staged(lane, packets),
        }
    }
}

impl ChosenTx {
    /// The name of an `auto` endpoint over this transport, for operators; `None` for UDP.
    pub fn label(&self) -> Option<&'static str> {
        match &self.0 {
            TxKind::Udp(_) => None,
            TxKind::Other(tx) => Some(tx.label()),
        }
    }
}

impl ChosenRx {
    fn least_spin(&self) -> Duration {
        match &self.0 {
            RxKind::Udp(rx) => Udp::least_spin(rx),
            RxKind::Other(rx) => rx.least_spin(),
        }
    }
}

impl Rx for ChosenRx {
    #[inline]
    fn burst(&mut self) -> usize {
        match &mut self.0 {
            RxKind::Udp(rx) => rx.burst(),
            RxKind::Other(rx) => rx.burst(),
        }
    }

    #[inline]
    fn whole(&self, index: usize) -> Option<&[u8]> {
        match &self.0 {
            RxKind::Udp(rx) => rx.whole(index),
            RxKind::Other(rx) => rx.whole(index),
        }
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        match &self.0 {
            RxKind::Udp(rx) => rx.frame(index),
            RxKind::Other(rx) => rx.frame(index),
        }
    }
}

impl Tx for ChosenTx {
    #[inline]
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        match &mut self.0 {
            TxKind::Udp(tx) => tx.burst(items),
            TxKind::Other(tx) => tx.burst(items),
        }
    }

    #[inline]
    fn done(&mut self) -> TxSeq {
        match &mut self.0 {
            TxKind::Udp(tx) => tx.done(),
            TxKind::Other(tx) => tx.done(),
        }
    }

    fn lane(&self) -> usize {
        match &self.0 {
            TxKind::Udp(tx) => tx.lane(),
            TxKind::Other(tx) => tx.lane(),
        }
    }

    #[inline]
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        match &mut self.0 {
            TxKind::Udp(tx) => tx.send(lane, items),
            TxKind::Other(tx) => tx.send(lane, items),
        }
    }

    fn path(&self, peer: PeerId) -> Option<Path> {
        match &self.0 {
            TxKind::Udp(tx) => tx.path(peer),
            TxKind::Other(tx) => tx.path(peer),
        }
    }

    fn reorders(&self, peer: PeerId) -> bool {
        match &self.0 {
            TxKind::Udp(tx) => tx.reorders(peer),
            TxKind::Other(tx) => tx.reorders(peer),
        }
    }

    #[inline]
    fn settle(&mut self) {
        match &mut self.0 {
            TxKind::Udp(tx) => tx.settle(),
            TxKind::Other(tx) => tx.settle(),
        }
    }

    fn flush(&mut self) {
        match &mut self.0 {
            TxKind::Udp(tx) => tx.flush(),
            TxKind::Other(tx) => tx.flush(),
        }
    }
}

#[cfg(test)]
mod tests;
