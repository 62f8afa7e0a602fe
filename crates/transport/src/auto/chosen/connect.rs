//! Setting up peers of the transport that was chosen, which does all of it.

use std::os::fd::RawFd;
use std::time::Duration;

use dunlin_core::transport::PeerId;

use super::super::erased::ONE_ENDPOINT;
use super::{Chosen, ChosenRx, ChosenTx, RxKind, TxKind};
use crate::connect::{Arm, Connect, ConnectError, Offer, PeerInfo, Pending};
use crate::counters::Counters;
use crate::udp::Udp;

/// Calls a function of the transport with both halves.
macro_rules! of_both {
    ($rx:expr, $tx:expr, $function:ident($($argument:expr),*)) => {
        match ($rx, $tx) {
            (ChosenRx(RxKind::Udp(rx)), ChosenTx(TxKind::Udp(tx))) => {
                Udp::$function(rx, tx, $($argument),*)
            }
            (ChosenRx(RxKind::Other(rx)), ChosenTx(TxKind::Other(tx))) => {
                tx.$function(&mut **rx, $($argument),*)
            }
            _ => unreachable!("{ONE_ENDPOINT}"),
        }
    };
}

/// Like [`of_both`], for a function that changes nothing.
macro_rules! seen_of_both {
    ($rx:expr, $tx:expr, $function:ident($($argument:expr),*)) => {
        match ($rx, $tx) {
            (ChosenRx(RxKind::Udp(rx)), ChosenTx(TxKind::Udp(tx))) => {
                Udp::$function(rx, tx, $($argument),*)
            }
            (ChosenRx(RxKind::Other(rx)), ChosenTx(TxKind::Other(tx))) => {
                tx.$function(&**rx, $($argument),*)
            }
            _ => unreachable!("{ONE_ENDPOINT}"),
        }
    };
}

impl Connect for Chosen {
    const KIND: u8 = Udp::KIND;

    fn offer(
        rx: &mut ChosenRx,
        tx: &mut ChosenTx,
        peer: &PeerInfo,
    ) -> Result<(Pending, Offer), ConnectError> {
        of_both!(rx, tx, offer(peer))
    }

    fn accept(
        rx: &mut ChosenRx,
        tx: &mut ChosenTx,
        peer: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        of_both!(rx, tx, accept(peer, offer))
    }

    fn complete(
        rx: &mut ChosenRx,
        tx: &mut ChosenTx,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        of_both!(rx, tx, complete(pending, answer))
    }

    fn data_size(rx: &ChosenRx, tx: &ChosenTx, peer: PeerId) -> u32 {
        seen_of_both!(rx, tx, data_size(peer))
    }

    fn must_prove(rx: &ChosenRx, tx: &ChosenTx, peer: PeerId) -> bool {
        seen_of_both!(rx, tx, must_prove(peer))
    }

    fn abandon(rx: &mut ChosenRx, tx: &mut ChosenTx, pending: Pending) {
        of_both!(rx, tx, abandon(pending));
    }

    fn release(rx: &mut ChosenRx, tx: &mut ChosenTx, peer: PeerId) {
        of_both!(rx, tx, release(peer));
    }

    fn remove(rx: &mut ChosenRx, tx: &mut ChosenTx, peer: PeerId) {
        of_both!(rx, tx, remove(peer));
    }

    fn fds(rx: &ChosenRx, tx: &ChosenTx, out: &mut Vec<RawFd>) {
        seen_of_both!(rx, tx, fds(out));
    }

    fn least_spin(rx: &ChosenRx) -> Duration {
        rx.least_spin()
    }

    fn arm(rx: &mut ChosenRx, tx: &mut ChosenTx) -> Arm {
        of_both!(rx, tx, arm())
    }

    fn disarm(rx: &mut ChosenRx, tx: &mut ChosenTx) {
        of_both!(rx, tx, disarm());
    }

    fn counters(rx: &ChosenRx, tx: &ChosenTx) -> Counters {
        seen_of_both!(rx, tx, counters())
    }

    fn details(rx: &ChosenRx, tx: &ChosenTx, show: &mut dyn FnMut(&'static str, u64)) {
        seen_of_both!(rx, tx, details(show));
    }
}
