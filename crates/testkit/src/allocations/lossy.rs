//! Adds losses to any transport: drops every n-th packet that is sent.

use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

use dunlin_core::transport::{Halves, Transport, Tx, TxItem, TxSeq};

/// The most packets of one burst; with more, the list of the surviving packets would allocate.
const BURST: usize = 1024;

/// Transport `T` whose TX half loses packets.
#[derive(Debug)]
pub struct Lossy<T>(PhantomData<T>);

impl<T: Transport> Transport for Lossy<T> {
    type Rx = T::Rx;
    type Tx = LossyTx<T::Tx>;
}

/// The sending half.
#[derive(Debug)]
pub struct LossyTx<X> {
    inner: X,
    /// One in this many packets is lost; if 0, no packet is.
    every: Rc<Cell<u64>>,
    taken: u64,
    inner_end: TxSeq,
    kept: Vec<TxItem>,
}

/// Wraps both halves. `every` can be changed while they are used.
pub(super) fn lossy<R, X>(halves: Halves<R, X>, every: &Rc<Cell<u64>>) -> Halves<R, LossyTx<X>> {
    Halves {
        rx: halves.rx,
        tx: LossyTx {
            inner: halves.tx,
            every: Rc::clone(every),
            taken: 0,
            inner_end: TxSeq(0),
            kept: Vec::with_capacity(BURST),
        },
        limits: halves.limits,
    }
}

impl<X: Tx> Tx for LossyTx<X> {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        let every = self.every.get();
        self.kept.clear();
        for item in items {
            self.taken += 1;
            if every == 0 || !self.taken.is_multiple_of(every) {
                self.kept.push(*item);
            }
        }
        self.inner_end = self.inner.burst(&self.kept);
        TxSeq(self.taken)
    }

    fn done(&mut self) -> TxSeq {
        assert!(
            self.inner.done() >= self.inner_end,
            "these transports copy at once"
        );
        TxSeq(self.taken)
    }

    fn flush(&mut self) {
        self.inner.flush();
    }
}
