//! The library under test, as the processes of all experiments use it: one endpoint for each
//! process, opened as its [`Setting`] demands. A client connects to its server's address, does the
//! work of its experiment, and reports. The server answers until the parent kills it.

pub(crate) mod client;
mod ends;
pub(crate) mod exchange;
pub(crate) mod pipeline;
mod report;
pub(crate) mod server;
pub(crate) mod side;
#[cfg(any(feature = "index", feature = "sequencer"))]
pub(crate) mod steps;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
#[cfg(feature = "full")]
use dunlin::transport::{AutoOptions, DpdkOptions, XdpMode, XdpOptions};
use dunlin::transport::{ShmOptions, UdpOptions};
#[cfg(feature = "full")]
use dunlin::{Auto, Dpdk, Xdp};
use dunlin::{Idle, Nexus, Open, ReqType, Rpc, Session, Shm, Udp};
use serde::{Deserialize, Serialize};

#[cfg(feature = "full")]
use super::link::{self, End};
#[cfg(feature = "full")]
use super::lossy::{Lossy, LossyOptions};
use super::probe::patience;
use super::transport::Transport;
#[cfg(feature = "full")]
pub(crate) use ends::at_link;
#[cfg(feature = "full")]
pub(crate) use ends::spinning_pair;
pub(crate) use ends::{linked, linked_pair};
use harness::process::{Parent, Process};
use harness::seat::Seat;
pub(crate) use report::Report;
use side::Side;

/// Answered with a function of the whole request ([`super::work`]), in the dispatch thread.
pub(crate) const ECHO: ReqType = ReqType(1);

/// Like `ECHO`, but after a while, in the dispatch thread.
pub(crate) const SLOW: ReqType = ReqType(2);

/// Like `ECHO`, but after a while, in a worker thread.
pub(crate) const SLOW_BACKGROUND: ReqType = ReqType(3);

/// The handler checks the marks of a large request, and answers with few bytes.
pub(crate) const SINK: ReqType = ReqType(4);

/// A short request, answered with a large response that has marks like large requests.
pub(crate) const SOURCE: ReqType = ReqType(5);

/// Answered with the bytes of the request.
pub(crate) const MIRROR: ReqType = ReqType(6);

/// Bytes of the answer to a large request.
pub(crate) const ANSWER: usize = 32;

/// Bytes of a large response.
pub(crate) const LARGE: u32 = 8 << 20;

/// Bytes of data in a packet over the link of an experiment, whose MTU is 9000.
#[cfg(feature = "full")]
pub(crate) const JUMBO: u32 = 8900;

/// Bytes of a packet before its data, with an extension.
#[cfg(feature = "full")]
const FRAMING: u32 = 72;

/// Time to start two processes with an endpoint each, and to connect them.
pub(crate) const SET_UP: Duration = Duration::from_millis(60);

/// A connection fails after this time.
const STUCK: Duration = Duration::from_secs(10);

/// How a process of an experiment opens its endpoint. Other options have their defaults.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) transport: Transport,
    /// udp: several packets in a datagram, and segmentation by the kernel (GSO, GRO).
    pub(crate) packing: bool,
    /// Whether the endpoint always spins. If not, it idles in the default way: it spins for a
    /// while, then blocks.
    pub(crate) spin: bool,
    /// The processor of the endpoint's thread. The threads of the nexus run anywhere.
    pub(crate) seat: Seat,
    /// The smallest retransmission timeout, if it is not the default.
    pub(crate) rto_floor: Option<Duration>,
    /// Threads for background handlers.
    pub(crate) workers: usize,
    /// Largest message.
    pub(crate) largest: u32,
    /// udp, xdp and dpdk: some of the incoming frames are dropped or late on purpose.
    pub(crate) loss: Option<Loss>,
    /// The endpoint's end of a link; `None` for the loopback device.
    #[cfg(feature = "full")]
    pub(crate) end: Option<End>,
    /// xdp: the number of endpoints of the process at one queue, if it has several.
    #[cfg(feature = "full")]
    pub(crate) sharing: Option<u32>,
    /// xdp: whether packets are as long as the link of an experiment permits, not only as long as
    /// on common Ethernet.
    pub(crate) jumbo: bool,
}

/// How many frames are lost or late, and which.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Loss {
    pub(crate) per_million: u32,
    pub(crate) late_per_million: u32,
    pub(crate) seed: u64,
}

/// A transport, with the options that experiments set.
pub(crate) trait Medium: Open {
    /// The most sessions that connect at the same time.
    const CONNECTING: usize = 256;

    /// Switches packing and segmentation.
    fn pack(options: &mut Self::Options, on: bool);

    /// Sets options with which the transport loses frames, if it can.
    fn lose(_options: &mut Self::Options, _loss: Loss) {}

    /// Sets the interface or the device of this end in the options, if the transport has one.
    #[cfg(feature = "full")]
    fn at(_options: &mut Self::Options, _end: &End, _jumbo: bool) {}

    /// Lets this number of endpoints of the process share a queue, if the transport has queues.
    #[cfg(feature = "full")]
    fn share(_options: &mut Self::Options, _endpoints: u32) {}
}

impl Medium for Shm {
    fn pack(_: &mut ShmOptions, _: bool) {}
}

impl Medium for Udp {
    fn pack(options: &mut UdpOptions, on: bool) {
        (options.pack, options.gso, options.gro) = (on, on, on);
    }
}

#[cfg(feature = "full")]
impl<T: Medium> Medium for Lossy<T> {
    const CONNECTING: usize = T::CONNECTING;

    fn pack(options: &mut LossyOptions<T::Options>, on: bool) {
        T::pack(&mut options.below, on);
    }

    fn lose(options: &mut LossyOptions<T::Options>, loss: Loss) {
        options.loss = loss;
    }

    fn at(options: &mut LossyOptions<T::Options>, end: &End, jumbo: bool) {
        T::at(&mut options.below, end, jumbo);
    }
}

#[cfg(feature = "full")]
impl Medium for Auto {
    fn pack(options: &mut AutoOptions, on: bool) {
        Udp::pack(&mut options.udp, on);
    }
}

#[cfg(feature = "full")]
impl Medium for Xdp {
    fn pack(options: &mut XdpOptions, on: bool) {
        Udp::pack(&mut options.udp, on);
    }

    fn at(options: &mut XdpOptions, end: &End, jumbo: bool) {
        let End::Interface(place) = end else { return };
        options.interface = place.interface().to_owned();
        if place.is_native() {
            options.mode = XdpMode::Native;
        }
        if jumbo {
            options.udp.data_size = JUMBO;
            options.udp.datagram_bytes = Some(JUMBO + FRAMING);
        }
    }

    fn share(options: &mut XdpOptions, endpoints: u32) {
        options.endpoints = endpoints;
    }
}

#[cfg(feature = "full")]
impl Medium for Dpdk {
    /// Sessions connect one at a time, because each proves the peer's address, and an endpoint may
    /// ignore a challenge that comes soon after another one. The server sends the next one after an
    /// eighth of the failure timeout, and this timeout is long in processes with priority
    /// ([`Seat`]).
    const CONNECTING: usize = 1;

    fn pack(options: &mut DpdkOptions, on: bool) {
        Udp::pack(&mut options.udp, on);
    }

    fn at(options: &mut DpdkOptions, end: &End, _jumbo: bool) {
        let End::Device(device) = end else { return };
        options.device = device.site();
        options.udp.allow_peers = link::NETWORK.parse().expect("a network");
    }
}

/// Calls a function that is generic over the [`Medium`] for a [`Setting`] that loses no frames.
#[cfg(not(test))]
macro_rules! over {
    ($setting:expr, $function:ident($($argument:expr),*)) => {{
        use $crate::harness::transport::Transport;
        match $setting.transport {
            Transport::Shm => $function::<dunlin::Shm>($($argument),*),
            Transport::Udp => $function::<dunlin::Udp>($($argument),*),
            #[cfg(feature = "full")]
            Transport::Auto => $function::<dunlin::Auto>($($argument),*),
            #[cfg(feature = "full")]
            Transport::Xdp | Transport::XdpNative => $function::<dunlin::Xdp>($($argument),*),
            #[cfg(feature = "full")]
            Transport::Dpdk => anyhow::bail!("this is not measured over dpdk"),
            #[cfg(feature = "full")]
            Transport::Sim => anyhow::bail!("no process uses the simulator"),
        }
    }};
}

/// Like `over`, and also over DPDK. Each further transport compiles the whole endpoint once more,
/// so only functions that are measured over it use this macro.
#[cfg(not(test))]
macro_rules! over_link {
    ($setting:expr, $function:ident($($argument:expr),*)) => {
        match $setting.transport {
            #[cfg(feature = "full")]
            $crate::harness::transport::Transport::Dpdk => {
                $function::<dunlin::Dpdk>($($argument),*)
            }
            _ => $crate::harness::subject::over!($setting, $function($($argument),*)),
        }
    };
}

/// Like `over_link`, for any [`Setting`].
#[cfg(not(test))]
macro_rules! over_lossy {
    ($setting:expr, $function:ident($($argument:expr),*)) => {{
        #[cfg(feature = "full")]
        use $crate::harness::{lossy, transport::Transport};
        match ($setting.loss, $setting.transport) {
            #[cfg(feature = "full")]
            (Some(_), Transport::Dpdk) => $function::<lossy::LossyDpdk>($($argument),*),
            #[cfg(feature = "full")]
            (Some(_), it) if it.has_link() => $function::<lossy::LossyXdp>($($argument),*),
            #[cfg(feature = "full")]
            (Some(_), _) => $function::<lossy::LossyUdp>($($argument),*),
            _ => $crate::harness::subject::over_link!($setting, $function($($argument),*)),
        }
    }};
}

/// In unit tests, `over` compiles no endpoint, because they start no process.
#[cfg(test)]
macro_rules! over {
    ($setting:expr, $function:ident($($argument:expr),*)) => {{
        let _ = ($function::<dunlin::Shm>, $setting, $($argument),*);
        anyhow::bail!("a unit test opens no endpoint")
    }};
}

/// Like `over` for unit tests.
#[cfg(test)]
macro_rules! over_link {
    ($setting:expr, $function:ident($($argument:expr),*)) => {
        $crate::harness::subject::over!($setting, $function($($argument),*))
    };
}

/// Like `over` for unit tests.
#[cfg(test)]
macro_rules! over_lossy {
    ($setting:expr, $function:ident($($argument:expr),*)) => {{
        #[cfg(feature = "full")]
        let _ = (
            $function::<$crate::harness::lossy::LossyUdp>,
            $function::<$crate::harness::lossy::LossyXdp>,
            $function::<$crate::harness::lossy::LossyDpdk>,
        );
        $crate::harness::subject::over!($setting, $function($($argument),*))
    }};
}
pub(crate) use {over, over_link, over_lossy};

impl Setting {
    /// A setting for an endpoint that spins, for latency and rate.
    pub(crate) fn spinning(transport: Transport, seat: Seat) -> Self {
        Self {
            spin: true,
            ..Self::adaptive(transport, seat)
        }
    }

    /// A setting for an endpoint that idles in the default way: it blocks when no packets arrive.
    pub(crate) fn adaptive(transport: Transport, seat: Seat) -> Self {
        Self {
            transport,
            packing: true,
            spin: false,
            seat,
            rto_floor: None,
            workers: 0,
            largest: 0,
            loss: None,
            #[cfg(feature = "full")]
            end: None,
            #[cfg(feature = "full")]
            sharing: None,
            jumbo: false,
        }
    }

    /// Makes a nexus, and the endpoint of this thread.
    ///
    /// # Errors
    /// The system refuses something.
    pub(crate) fn open<T: Medium, App>(&self, app: App) -> anyhow::Result<Rpc<T, App>> {
        let nexus = self.bind()?;
        // The threads of DPDK are not pinned either.
        let has_threads = self.transport.has_threads();
        if !has_threads {
            self.seat.take()?;
        }
        let rpc = self.open_at(&nexus, app)?;
        if has_threads {
            self.seat.take()?;
        }
        Ok(rpc)
    }

    /// Makes a nexus, whose threads are not pinned. The calling thread must not have taken a seat.
    ///
    /// # Errors
    /// The system refuses something.
    pub(crate) fn bind(&self) -> anyhow::Result<Nexus> {
        self.seat.prepare()?;
        let mut nexus = Nexus::builder().workers(self.workers);
        if self.seat.first {
            // A busy system may suspend such a process once for a long time, rather than often for
            // a short time.
            nexus = nexus.failure_timeout(Duration::from_secs(60));
        }
        Ok(nexus.bind((self.enter()?, 0))?)
    }

    /// Makes an endpoint of the calling thread, which has its seat.
    ///
    /// # Errors
    /// The system refuses something.
    pub(crate) fn open_at<T: Medium, App>(
        &self,
        nexus: &Nexus,
        app: App,
    ) -> anyhow::Result<Rpc<T, App>> {
        let mut builder = nexus
            .endpoint_builder::<T>()
            .transport(|options| {
                T::pack(options, self.packing);
                #[cfg(feature = "full")]
                if let Some(end) = &self.end {
                    T::at(options, end, self.jumbo);
                }
                #[cfg(feature = "full")]
                if let Some(endpoints) = self.sharing {
                    T::share(options, endpoints);
                }
                if let Some(loss) = self.loss {
                    T::lose(options, loss);
                }
            })
            .config(|config| {
                let largest = u64::from(self.largest);
                if self.largest > config.max_message {
                    config.max_message = self.largest;
                    config.session_receive_budget = 8 * largest;
                    config.receive_budget = 8 * largest;
                    config.pool_bytes = 8 << 30;
                }
                if let Some(floor) = self.rto_floor {
                    config.rto_floor = floor.into();
                }
            });
        if self.spin {
            builder = builder.idle(Idle::Spin);
        }
        Ok(builder.build(app)?)
    }

    /// Moves the calling thread to its end of the link, if it has one. Returns the address there.
    fn enter(&self) -> anyhow::Result<IpAddr> {
        #[cfg(feature = "full")]
        if let Some(end) = &self.end {
            return end.enter();
        }
        Ok(Ipv4Addr::LOCALHOST.into())
    }
}

/// A server process, and its address.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    process: Process,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// The server does not start.
    pub(crate) fn start(params: &server::Params) -> anyhow::Result<Self> {
        let mut process = Process::spawn(server::ROLE, Seat::default(), params)?;
        let address = process.receive(patience(Duration::ZERO))?;
        Ok(Self { address, process })
    }

    /// Its counts and its use of resources so far.
    ///
    /// # Errors
    /// The server has ended.
    pub(crate) fn side(&mut self) -> anyhow::Result<Side> {
        self.process.send(&())?;
        self.process.receive(patience(Duration::ZERO))
    }
}

/// Connects `count` sessions with the endpoint at `server`, many at the same time.
///
/// # Errors
/// One of them cannot be connected.
pub(crate) fn connect<T: Medium, App>(
    rpc: &mut Rpc<T, App>,
    server: SocketAddr,
    count: usize,
) -> anyhow::Result<Vec<Session>> {
    let mut sessions = Vec::with_capacity(count);
    for connected in 0..count {
        while sessions.len() < count.min(connected + T::CONNECTING) {
            sessions.push(rpc.connect(server)?);
        }
        wait(rpc, sessions[connected])
            .with_context(|| format!("session {connected} of {count}"))?;
    }
    Ok(sessions)
}

/// Tells the parent the address of this endpoint, and waits until another endpoint has opened
/// `count` sessions with it and issues requests on them. `accepted` gives access to the sessions
/// accepted so far.
///
/// # Errors
/// There are more or fewer sessions, or no request arrives within the time that connecting may
/// take.
pub(crate) fn accept<T: Medium, App>(
    parent: &Parent,
    rpc: &mut Rpc<T, App>,
    count: usize,
    accepted: impl FnOnce(&mut App) -> &mut Vec<Session>,
) -> anyhow::Result<Vec<Session>> {
    parent.say(&rpc.nexus().address())?;
    let begin = Instant::now();
    rpc.run_until(|rpc| rpc.counters().requests_received > 0 || begin.elapsed() > STUCK);
    let sessions = std::mem::take(accepted(rpc.app_mut()));
    let came = sessions.len();
    ensure!(came == count, "{came} sessions came, not {count}");
    Ok(sessions)
}

/// Like [`Rpc::wait_connected`], but also ends if the control thread gets no processor time in
/// which to report that it cannot connect.
fn wait<T: Medium, App>(rpc: &mut Rpc<T, App>, session: Session) -> anyhow::Result<()> {
    let begin = Instant::now();
    while rpc.session_info(session).is_ok_and(|info| !info.open) {
        rpc.run_once();
        ensure!(
            begin.elapsed() < STUCK,
            "it takes over {} s",
            STUCK.as_secs()
        );
    }
    Ok(rpc.wait_connected(session)?)
}
