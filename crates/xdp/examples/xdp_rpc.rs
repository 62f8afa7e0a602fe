//! RPCs between two endpoints of `xdp` without a device, in one thread and with a clock that only
//! counts. A kernel in user space carries the frames from the rings of each endpoint to the
//! other's. `cargo xtask budget` runs it under callgrind, and compares the cost of the transport,
//! without that of the kernel, with `budget.toml`.
//!
//! ```text
//! cargo run --release -p dunlin-xdp --features wire --example xdp_rpc -- \
//!     32 [IN_FLIGHT] [SESSIONS] [COUNT] [packed]
//! ```
//!
//! Messages have 32 bytes each way. Packets may share datagrams if one request is in flight, which
//! must not cost a lone packet anything, or with the word `packed`. Otherwise each has a datagram
//! of its own. The last printed line is the number of counted RPCs.

#[path = "../../transport/examples/rpc/apart.rs"]
mod apart;
#[path = "../../transport/examples/rpc/mod.rs"]
mod rpc;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use dunlin_core::transport::{Frame, Halves, PeerId, Rx, Transport};
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_xdp::wire::{Wire, joined};
use dunlin_xdp::{Xdp, XdpRx, XdpTx};

use apart::{Apart, Client, Server, Turn, apart, plan_of_32_bytes};
use rpc::{End, run};

/// `xdp` over a wire, with its work for side `S` in functions of its own.
#[derive(Debug)]
struct Wired<S>(PhantomData<S>);

type Receiving<S> = <Apart<Xdp, S> as Transport>::Rx;

/// The receiving half, and the wire, which carries frames before each burst. That is not work of
/// the transport.
struct WiredRx<S: Turn> {
    rx: Receiving<S>,
    wire: Rc<RefCell<Wire>>,
}

impl<S: Turn> Transport for Wired<S> {
    type Rx = WiredRx<S>;
    type Tx = <Apart<Xdp, S> as Transport>::Tx;
}

impl<S: Turn> Rx for WiredRx<S> {
    fn burst(&mut self) -> usize {
        self.wire.borrow_mut().carry();
        self.rx.burst()
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        self.rx.frame(index)
    }

    fn whole(&self, index: usize) -> Option<&[u8]> {
        self.rx.whole(index)
    }
}

fn main() {
    let (plan, packs) = plan_of_32_bytes();
    let ([a, b], wire) = joined(packs).expect("there are sockets and memory");
    let wire = Rc::new(RefCell::new(wire));
    let [(a, to_b), (b, to_a)] = acquainted(a, b);
    let ends = (wired(a, to_b, &wire), wired(b, to_a, &wire));
    println!(
        "{}",
        run::<Wired<Client>, Wired<Server>, 32, false>(&plan, ends)
    );
}

fn wired<S: Turn>(
    halves: Halves<XdpRx, XdpTx>,
    peer: PeerId,
    wire: &Rc<RefCell<Wire>>,
) -> End<Wired<S>> {
    let Halves { rx, tx, limits } = apart(halves);
    let wire = wire.clone();
    let rx = WiredRx { rx, wire };
    (Halves { rx, tx, limits }, peer)
}

/// Two endpoints that know each other.
fn acquainted(mut a: Halves<XdpRx, XdpTx>, mut b: Halves<XdpRx, XdpTx>) -> [End<Xdp>; 2] {
    let info = |number: u8| PeerInfo {
        endpoint: EndpointUid([number; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some([10, 0, 0, number].into()),
    };
    let met = meet::<Xdp>([&mut a, &mut b], &[info(1), info(2)]);
    let [to_b, to_a] = met.expect("they do not know each other yet");
    [(a, to_b), (b, to_a)]
}
