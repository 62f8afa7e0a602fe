//! The process that serves. It fills a table once, and then serves over one endpoint after the
//! other, as its parent orders. It also answers the echoes of the baseline.

use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dunlin::kv::store::Mode;
use dunlin::kv::{Host, Map, Partition};
use dunlin::{ReqType, Request, Rpc};
use serde::{Deserialize, Serialize};

use crate::harness::items::{self, Items, Mix};
use crate::harness::probe::patience;
use crate::harness::subject::server::apart;
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Setting, over};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::{Seat, Seats};

/// Holds a table, and serves it.
pub(super) const ROLE: Role = Role::new("kv-hold", hold);

/// Echoes with answers as long as the answers to gets and to sets.
pub(super) const ECHOES: [ReqType; 2] = [ReqType(0x10), ReqType(0x11)];

/// Bytes of an answer to a get without the value, and of an answer to a set (protocol,
/// `docs/kv.md`).
const ANSWERS: [usize; 2] = [24, 16];

/// How long to wait until a table is filled. Even slow machines fill more than 10 MiB a second.
const FILLING: Duration = Duration::from_secs(300);

/// Iterations between two checks for orders.
const BLOCK: u32 = 256;

/// Orders of the parent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Order {
    /// Open an endpoint, and serve the requests of a burst together, or each by itself.
    Serve { setting: Setting, batched: bool },
    /// Report counters.
    Side,
    /// Close the endpoint.
    Rest,
    /// Get items directly from the table.
    Alone { mix: Mix, span: Duration },
}

/// A process that serves, as its parent sees it.
#[derive(Debug)]
pub(super) struct Server(Process);

impl Server {
    /// Starts a server with a cache or a store, and waits until its table is filled.
    ///
    /// # Errors
    /// There is no memory, or the system cannot start a process.
    pub(super) fn start(items: Items, is_cache: bool) -> anyhow::Result<Self> {
        let mut process = Process::spawn(ROLE, Seat::default(), &(items, is_cache))?;
        process.receive::<()>(FILLING)?;
        Ok(Self(process))
    }

    /// Begins to serve, and returns the address.
    ///
    /// # Errors
    /// The endpoint cannot be opened.
    pub(super) fn serve(&mut self, setting: Setting, batched: bool) -> anyhow::Result<SocketAddr> {
        self.0.send(&Order::Serve { setting, batched })?;
        self.0.receive(patience(Duration::ZERO))
    }

    /// The counters of its endpoint.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn side(&mut self) -> anyhow::Result<Side> {
        self.0.send(&Order::Side)?;
        self.0.receive(patience(Duration::ZERO))
    }

    /// Closes its endpoint.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn rest(&mut self) -> anyhow::Result<()> {
        self.0.send(&Order::Rest)?;
        self.0.receive(patience(Duration::ZERO))
    }

    /// The rate of direct gets from its table, on the processor on which it serves.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn alone(&mut self, mix: Mix, span: Duration) -> anyhow::Result<f64> {
        self.0.send(&Order::Alone { mix, span })?;
        self.0.receive(patience(4 * span))
    }
}

/// The state of the endpoint.
struct App {
    /// `None` only after the endpoint has given it back.
    partition: Option<Partition>,
    /// Bytes of the answers to [`ECHOES`].
    answers: [usize; 2],
}

impl Host for App {
    fn partition(&mut self) -> &mut Partition {
        let partition = self.partition.as_mut();
        partition.expect("an endpoint that serves has a partition")
    }
}

/// Holds a table until the parent ends.
///
/// # Errors
/// There is no memory, or an endpoint cannot be opened.
fn hold(parent: &Parent) -> anyhow::Result<()> {
    let (items, is_cache): (Items, bool) = parent.receive()?;
    let mode = match is_cache {
        true => Mode::Cache,
        false => Mode::Store,
    };
    let seat = Seats::pick().server;
    let table = apart(|| {
        seat.take()?;
        items::make(items, mode)
    })?;
    let mut partition = Partition::new(table, Map::new(17, mode, [0])?, 0);
    parent.say(&())?;
    let mut orders = listen();
    loop {
        match orders.recv().context("the parent has ended")? {
            Order::Serve { setting, batched } => {
                let app = App {
                    partition: Some(partition),
                    answers: [ANSWERS[0] + items.value, ANSWERS[1]],
                };
                let orders = &mut orders;
                partition = apart(|| over!(setting, serve(parent, orders, setting, batched, app)))?;
                parent.say(&())?;
            }
            Order::Alone { mix, span } => {
                let table = partition.lend();
                let rate = apart(|| {
                    seat.take()?;
                    items::rate(table, items, mix, dunlin_store::BATCH, span)
                })?;
                parent.say(&rate)?;
            }
            Order::Side | Order::Rest => bail!("there is no endpoint"),
        }
    }
}

/// Serves until the parent orders the endpoint to close; returns the partition.
fn serve<T: Medium>(
    parent: &Parent,
    orders: &mut Receiver<Order>,
    setting: Setting,
    batched: bool,
    app: App,
) -> anyhow::Result<Partition> {
    let mut rpc: Rpc<T, App> = setting.open(app)?;
    match batched {
        true => dunlin::kv::serve(&mut rpc),
        false => dunlin::kv::serve_singly(&mut rpc),
    }
    rpc.on(ECHOES[0], |app, request, cx| {
        echo(app.answers[0], request, cx);
    });
    rpc.on(ECHOES[1], |app, request, cx| {
        echo(app.answers[1], request, cx);
    });
    parent.say(&rpc.nexus().address())?;
    loop {
        for _ in 0..BLOCK {
            rpc.run_once();
        }
        match orders.try_recv() {
            Ok(Order::Side) => parent.say(&Side::read(&mut rpc)?)?,
            Ok(Order::Rest) => break,
            Ok(_) => bail!("an endpoint is open already"),
            Err(_) => {}
        }
    }
    let partition = rpc.app_mut().partition.take();
    partition.context("the endpoint had the partition")
}

fn echo(len: usize, request: Request<'_>, cx: &mut dunlin::Cx<'_>) {
    let data = request.data();
    request.reply(cx, len, |out| work::answer(data, out));
}

/// The parent's orders, as they come.
fn listen() -> Receiver<Order> {
    let (tx, orders) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(order) = Parent.receive() {
            if tx.send(order).is_err() {
                break;
            }
        }
    });
    orders
}
