//! A transport whose work a profile can split by side: all its work for the client happens in
//! `<Client as Turn>::transport`, and all its work for the server in `<Server as Turn>::transport`.
//! Programs that count only the transport wrap it in [`Apart`].

use std::hint::black_box;
use std::marker::PhantomData;

use dunlin_core::transport::{
    Frame, Halves, Lane, LanePacket, Messages, Path, PeerId, Rx, Transport, Tx, TxItem, TxSeq,
};

use crate::rpc::Plan;

/// Reads the program's arguments: message size, which must be 32; requests in flight; sessions;
/// RPCs; and perhaps the word `packed`. The second result is whether packets may share datagrams:
/// they may with that word, and if only one request is in flight.
pub(crate) fn plan_of_32_bytes() -> (Plan, bool) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        let text = args.get(at);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    assert_eq!(number(0, 32), 32, "messages have 32 bytes");
    let plan = Plan {
        in_flight: usize::try_from(number(1, 32)).expect("few"),
        sessions: usize::try_from(number(2, 4)).expect("few"),
        count: number(3, 100_000),
    };
    let packs = plan.in_flight == 1 || args.get(4).is_some_and(|word| word == "packed");
    (plan, packs)
}

/// A side, as the profile names it.
pub(crate) trait Turn {
    /// Runs work of the transport.
    fn transport<R>(work: impl FnOnce() -> R) -> R;
}

/// The side that calls.
#[derive(Debug)]
pub(crate) enum Client {}

/// The side that answers.
#[derive(Debug)]
pub(crate) enum Server {}

// The compiler merges functions with the same code. The calls of `black_box` make these two
// different, and compile to no instructions.
impl Turn for Client {
    #[inline(never)]
    fn transport<R>(work: impl FnOnce() -> R) -> R {
        black_box(());
        work()
    }
}

impl Turn for Server {
    #[inline(never)]
    fn transport<R>(work: impl FnOnce() -> R) -> R {
        black_box(());
        black_box(());
        work()
    }
}

/// The transport `T`, whose work runs in [`Turn::transport`] of the side `S`.
#[derive(Debug)]
pub(crate) struct Apart<T, S>(PhantomData<(T, S)>);

/// The receiving half.
#[derive(Debug)]
pub(crate) struct ApartRx<R, S>(R, PhantomData<S>);

/// The sending half.
#[derive(Debug)]
pub(crate) struct ApartTx<X, S>(X, PhantomData<S>);

/// Wraps the halves of a transport, for the side `S`.
pub(crate) fn apart<R, X, S>(halves: Halves<R, X>) -> Halves<ApartRx<R, S>, ApartTx<X, S>> {
    Halves {
        rx: ApartRx(halves.rx, PhantomData),
        tx: ApartTx(halves.tx, PhantomData),
        limits: halves.limits,
    }
}

impl<T: Transport, S: Turn> Transport for Apart<T, S> {
    type Rx = ApartRx<T::Rx, S>;
    type Tx = ApartTx<T::Tx, S>;
}

impl<R: Rx, S: Turn> Rx for ApartRx<R, S> {
    fn burst(&mut self) -> usize {
        S::transport(|| self.0.burst())
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        S::transport(|| self.0.frame(index))
    }

    fn whole(&self, index: usize) -> Option<&[u8]> {
        S::transport(|| self.0.whole(index))
    }

    fn lined_up(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.0.lined_up(first)
    }

    fn first(&self) -> Option<&[u8]> {
        S::transport(|| self.0.first())
    }
}

impl<X: Tx, S: Turn> Tx for ApartTx<X, S> {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        S::transport(|| self.0.burst(items))
    }

    fn done(&mut self) -> TxSeq {
        S::transport(|| self.0.done())
    }

    fn lane(&self) -> usize {
        self.0.lane()
    }

    fn send(&mut self, lane: &Lane, items: &[TxItem]) -> TxSeq {
        S::transport(|| self.0.send(lane, items))
    }

    fn takes_alike(&self, packet: LanePacket) -> bool {
        self.0.takes_alike(packet)
    }

    fn send_alike<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        S::transport(|| self.0.send_alike(lane, packet, messages))
    }

    fn send_lone<'a>(
        &mut self,
        lane: &'a Lane,
        packet: LanePacket,
        messages: impl Messages<'a>,
    ) -> TxSeq {
        S::transport(|| self.0.send_lone(lane, packet, messages))
    }

    fn path(&self, peer: PeerId) -> Option<Path> {
        self.0.path(peer)
    }

    fn settle(&mut self) {
        S::transport(|| self.0.settle());
    }

    fn flush(&mut self) {
        self.0.flush();
    }
}
