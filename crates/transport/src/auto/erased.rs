//! The halves of a transport behind trait objects, so that the program can choose the transport for
//! peers of other hosts when an endpoint opens.
//!
//! Invariant: the two halves that [`erase`] makes stay together, so each finds the type of the
//! other. Called by `chosen`.

use std::any::Any;
use std::fmt;
use std::os::fd::RawFd;
use std::time::Duration;

use dunlin_core::transport::{
    Frame, Halves, Lane, LanePacket, Path, PeerId, Rx, Tx, TxItem, TxSeq,
};

use super::remote::Remote;
use crate::connect::{Arm, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;

/// The receiving half of any transport. Its functions are those of [`Rx`] and of [`Remote`].
pub(super) trait ErasedRx: Any + Send + fmt::Debug {
    fn burst(&mut self) -> usize;
    fn whole(&self, index: usize) -> Option<&[u8]>;
    fn frame(&self, index: usize) -> Frame<'_>;
    fn looks_are_cheap(&self) -> bool;
    fn least_spin(&self) -> Duration;
}

/// The sending half of any transport. Its functions are those of [`Tx`], of [`Remote`], and of
/// [`Connect`](crate::connect::Connect), which get the receiving half of the same endpoint.
pub(super) trait ErasedTx: Any + Send + fmt::Debug {
    fn label(&self) -> &'static str;
    fn burst(&mut self, items: &[TxItem]) -> TxSeq;
    fn done(&mut self) -> TxSeq;
    fn lane(&self) -> usize;
    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq;
    fn send_staged(&mut self, lane: &Lane, packets: &[LanePacket]) -> TxSeq;
    fn path(&self, peer: PeerId) -> Option<Path>;
    fn reorders(&self, peer: PeerId) -> bool;
    fn settle(&mut self);
    fn flush(&mut self);

    fn offer(
        &mut self,
        rx: &mut dyn ErasedRx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError>;
    fn accept(
        &mut self,
        rx: &mut dyn ErasedRx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError>;
    fn complete(
        &mut self,
        rx: &mut dyn ErasedRx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError>;
    fn data_size(&self, rx: &dyn ErasedRx, peer: PeerId) -> u32;
    fn must_prove(&self, rx: &dyn ErasedRx, peer: PeerId) -> bool;
    fn abandon(&mut self, rx: &mut dyn ErasedRx, pending: Pending);
    fn release(&mut self, rx: &mut dyn ErasedRx, peer: PeerId);
    fn remove(&mut self, rx: &mut dyn ErasedRx, peer: PeerId);
    fn fds(&self, rx: &dyn ErasedRx, out: &mut Vec<RawFd>);
    fn arm(&mut self, rx: &mut dyn ErasedRx) -> Arm;
    fn disarm(&mut self, rx: &mut dyn ErasedRx);
    fn counters(&self, rx: &dyn ErasedRx) -> Counters;
    fn details(&self, rx: &dyn ErasedRx, show: &mut dyn FnMut(&'static str, u64));
}

/// The receiving half of `R`.
struct RxOf<R: Remote>(R::Rx);

/// The sending half of `R`, and the name of an `auto` endpoint over it.
struct TxOf<R: Remote>(R::Tx, &'static str);

/// Puts the halves of a transport behind trait objects.
pub(super) fn erase<R: Remote<Rx: Send, Tx: Send> + 'static>(
    label: &'static str,
    halves: Halves<R::Rx, R::Tx>,
) -> Halves<Box<dyn ErasedRx>, Box<dyn ErasedTx>> {
    Halves {
        rx: Box::new(RxOf::<R>(halves.rx)),
        tx: Box::new(TxOf::<R>(halves.tx, label)),
        limits: halves.limits,
    }
}

/// The receiving half of the same endpoint as a sending half of `R`.
fn own<R: Remote + 'static>(rx: &dyn ErasedRx) -> &R::Rx {
    let rx: &dyn Any = rx;
    &rx.downcast_ref::<RxOf<R>>().expect(ONE_ENDPOINT).0
}

/// Like [`own`], to change it.
fn own_mut<R: Remote + 'static>(rx: &mut dyn ErasedRx) -> &mut R::Rx {
    let rx: &mut dyn Any = rx;
    &mut rx.downcast_mut::<RxOf<R>>().expect(ONE_ENDPOINT).0
}

/// Why two halves have one type.
pub(super) const ONE_ENDPOINT: &str = "both halves are of one endpoint";

impl<R: Remote<Rx: Send> + 'static> ErasedRx for RxOf<R> {
    fn burst(&mut self) -> usize {
        self.0.burst()
    }

    fn whole(&self, index: usize) -> Option<&[u8]> {
        self.0.whole(index)
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        self.0.frame(index)
    }

    fn looks_are_cheap(&self) -> bool {
        R::looks_are_cheap(&self.0)
    }

    fn least_spin(&self) -> Duration {
        R::least_spin(&self.0)
    }
}

impl<R: Remote<Tx: Send> + 'static> ErasedTx for TxOf<R> {
    fn label(&self) -> &'static str {
        self.1
    }

    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        self.0.burst(items)
    }

    fn done(&mut self) -> TxSeq {
        self.0.done()
    }

    fn lane(&self) -> usize {
        self.0.lane()
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        self.0.send(lane, items)
    }

    fn send_staged(&mut self, lane: &Lane, packets: &[LanePacket]) -> TxSeq {
        R::send_staged(&mut self.0, lane, packets)
    }

    fn path(&self, peer: PeerId) -> Option<Path> {
        self.0.path(peer)
    }

    fn reorders(&self, peer: PeerId) -> bool {
        self.0.reorders(peer)
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn flush(&mut self) {
        self.0.flush();
    }

    fn offer(
        &mut self,
        rx: &mut dyn ErasedRx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        R::offer(own_mut::<R>(rx), &mut self.0, peer)
    }

    fn accept(
        &mut self,
        rx: &mut dyn ErasedRx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        R::accept(own_mut::<R>(rx), &mut self.0, peer, offer)
    }

    fn complete(
        &mut self,
        rx: &mut dyn ErasedRx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        R::complete(own_mut::<R>(rx), &mut self.0, pending, answer)
    }

    fn data_size(&self, rx: &dyn ErasedRx, peer: PeerId) -> u32 {
        R::data_size(own::<R>(rx), &self.0, peer)
    }

    fn must_prove(&self, rx: &dyn ErasedRx, peer: PeerId) -> bool {
        R::must_prove(own::<R>(rx), &self.0, peer)
    }

    fn abandon(&mut self, rx: &mut dyn ErasedRx, pending: Pending) {
        R::abandon(own_mut::<R>(rx), &mut self.0, pending);
    }

    fn release(&mut self, rx: &mut dyn ErasedRx, peer: PeerId) {
        R::release(own_mut::<R>(rx), &mut self.0, peer);
    }

    fn remove(&mut self, rx: &mut dyn ErasedRx, peer: PeerId) {
        R::remove(own_mut::<R>(rx), &mut self.0, peer);
    }

    fn fds(&self, rx: &dyn ErasedRx, out: &mut Vec<RawFd>) {
        R::fds(own::<R>(rx), &self.0, out);
    }

    fn arm(&mut self, rx: &mut dyn ErasedRx) -> Arm {
        R::arm(own_mut::<R>(rx), &mut self.0)
    }

    fn disarm(&mut self, rx: &mut dyn ErasedRx) {
        R::disarm(own_mut::<R>(rx), &mut self.0);
    }

    fn counters(&self, rx: &dyn ErasedRx) -> Counters {
        R::counters(own::<R>(rx), &self.0)
    }

    fn details(&self, rx: &dyn ErasedRx, show: &mut dyn FnMut(&'static str, u64)) {
        R::details(own::<R>(rx), &self.0, show);
    }
}

impl<R: Remote> fmt::Debug for RxOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RxOf").finish_non_exhaustive()
    }
}

impl<R: Remote> fmt::Debug for TxOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxOf").finish_non_exhaustive()
    }
}
