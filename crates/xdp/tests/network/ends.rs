//! Endpoints of either transport at the two ends of a link, and RPCs between them in one thread.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, PeerId, Rx, Transport, Tx};
use dunlin_core::{
    Config, Done, Endpoint, EndpointNum, Nanos, Request, Session, SessionOptions, Tag,
};
use dunlin_testkit::clock::WallClock;
use dunlin_testkit::network::Host;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::counters::Counters;
use dunlin_transport::shm;
use dunlin_transport::udp::{self, Udp};
use dunlin_wire::ReqType;
use dunlin_xdp::{AutoOptions, AutoXdp, Mode, Options, Xdp, open_auto};

const ECHO: ReqType = ReqType(1);
/// Longest time that a round of RPCs may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a peer may be silent.
const PATIENT: Nanos = Nanos::from_secs(30);

/// A transport that a test can open.
pub(crate) trait Side: Connect {
    fn open(options: &Options) -> Halves<Self::Rx, Self::Tx>;
}

impl Side for Xdp {
    fn open(options: &Options) -> Halves<Self::Rx, Self::Tx> {
        Self::open(options).unwrap()
    }
}

impl Side for AutoXdp {
    fn open(options: &Options) -> Halves<Self::Rx, Self::Tx> {
        let (shm, xdp) = (shm::Options::default(), options.clone());
        open_auto(&AutoOptions { shm, xdp }).unwrap()
    }
}

impl Side for Udp {
    fn open(options: &Options) -> Halves<Self::Rx, Self::Tx> {
        Self::open(&options.udp).unwrap()
    }
}

/// Halves at a host.
pub(crate) struct End<T: Transport> {
    pub(crate) halves: Halves<T::Rx, T::Tx>,
    number: u8,
}

/// Options of an endpoint at a host.
pub(crate) fn at(host: &Host, is_v6: bool) -> Options {
    let ip: IpAddr = if is_v6 { host.address_6 } else { host.address }
        .parse()
        .unwrap();
    Options {
        interface: "link0".to_owned(),
        umem_bytes: 4 << 20,
        mode: Mode::Generic,
        udp: udp::Options {
            ip,
            allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
            ..udp::Options::default()
        },
        ..Options::default()
    }
}

impl<T: Side> End<T>
where
    T::Rx: Send,
    T::Tx: Send,
{
    /// Opens an endpoint.
    pub(crate) fn open(host: &Host, number: u8, options: &Options) -> Self {
        Self {
            halves: host.run(|| T::open(options)),
            number,
        }
    }

    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo {
            endpoint: EndpointUid([self.number; 16]),
            same_host: false,
            same_process: false,
            proves: true,
            local: None,
            remote: Some([10, 0, 0, 1].into()),
        }
    }

    pub(crate) fn detail(&self, name: &str) -> u64 {
        detail_of::<T>(&self.halves.rx, &self.halves.tx, name)
    }

    /// The bytes of all frames that come within a moment.
    pub(crate) fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for _ in 0..5000 {
            let count = self.halves.rx.burst();
            frames.extend((0..count).map(|at| self.halves.rx.frame(at).bytes.to_vec()));
            self.halves.tx.settle();
        }
        frames
    }

    /// The bytes of all frames that come until there are `count` of them, for at most [`PATIENCE`],
    /// and within a moment after that.
    pub(crate) fn await_frames(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (start, mut frames) = (Instant::now(), Vec::new());
        while frames.len() < count && start.elapsed() < PATIENCE {
            frames.extend(self.frames());
        }
        frames
    }

    /// The bytes of all frames that come until a counter has this value, for at most [`PATIENCE`].
    ///
    /// # Panics
    /// If it gets another value.
    pub(crate) fn frames_until(&mut self, name: &str, value: u64) -> Vec<Vec<u8>> {
        let (start, mut frames) = (Instant::now(), self.frames());
        while self.detail(name) < value && start.elapsed() < PATIENCE {
            frames.extend(self.frames());
        }
        assert_eq!(self.detail(name), value, "{name}");
        frames
    }

    /// Waits for at most [`PATIENCE`] until a counter has this value.
    pub(crate) fn await_detail(&self, name: &str, value: u64) {
        let start = Instant::now();
        while self.detail(name) != value && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.detail(name), value, "{name}");
    }
}

pub(crate) fn detail_of<T: Side>(rx: &T::Rx, tx: &T::Tx, name: &str) -> u64 {
    let mut details = Vec::new();
    T::details(rx, tx, &mut |name, count| details.push((name, count)));
    let names: Vec<&str> = details.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, T::DETAILS);
    let found = details.iter().find(|(detail, _)| *detail == name);
    found
        .unwrap_or_else(|| panic!("no counter {name}: {details:?}"))
        .1
}

/// Makes two endpoints known to each other. Returns the first one's id for the second, and the
/// second one's for the first.
pub(crate) fn meet<A: Side, B: Side>(a: &mut End<A>, b: &mut End<B>) -> [PeerId; 2]
where
    A::Rx: Send,
    A::Tx: Send,
    B::Rx: Send,
    B::Tx: Send,
{
    let (info_a, info_b) = (a.info(), b.info());
    let (a, b) = (&mut a.halves, &mut b.halves);
    let (pending, offer) = A::offer(&mut a.rx, &mut a.tx, &info_b).unwrap();
    // The control plane, too, carries the parts of an offer separately.
    let offer = B::whole(A::parts(offer)).unwrap();
    let (to_a, answer) = B::accept(&mut b.rx, &mut b.tx, &info_a, offer).unwrap();
    let answer = A::whole(B::parts(answer)).unwrap();
    let to_b = A::complete(&mut a.rx, &mut a.tx, pending, answer).unwrap();
    [to_b, to_a]
}

/// A client and a server that echoes.
pub(crate) struct Echo<A: Side, B: Side> {
    pub(crate) client: Endpoint<A, WallClock, Calls>,
    pub(crate) server: Endpoint<B, WallClock, ()>,
    session: Session,
}

/// The client's side of the calls.
#[derive(Default)]
pub(crate) struct Calls {
    done: u64,
    failed: u64,
}

/// A byte of a request.
#[expect(clippy::cast_possible_truncation, reason = "any byte will do")]
fn filling(tag: u64, at: usize) -> u8 {
    (tag as usize * 31 + at * 7 + at / 251) as u8
}

fn answer(_: &mut (), request: Request<'_>, cx: &mut dunlin_core::Cx<'_>) {
    let bytes = request.data().to_vec();
    request.reply(cx, bytes.len(), |out| {
        out.iter_mut()
            .zip(&bytes)
            .for_each(|(to, byte)| *to = byte ^ 0x5A);
    });
}

fn complete(calls: &mut Calls, done: Done, _: &mut dunlin_core::Cx<'_>) {
    calls.done += 1;
    let tag = done.tag.0;
    let request = done.request.data();
    let response = done.response.data();
    let right = response
        .iter()
        .enumerate()
        .all(|(at, byte)| *byte == filling(tag, at) ^ 0x5A);
    if done.result != Ok(()) || response.len() != request.len() || !right {
        println!("call {tag}: {:?}, {} bytes", done.result, response.len());
        calls.failed += 1;
    }
}

impl<A: Side, B: Side> Echo<A, B>
where
    A::Rx: Send,
    A::Tx: Send,
    B::Rx: Send,
    B::Tx: Send,
{
    pub(crate) fn new(mut near: End<A>, mut far: End<B>) -> Self {
        let [to_server, to_client] = meet(&mut near, &mut far);
        let config = || Config {
            hugepages: false,
            // On a busy machine, a packet and the thread of a relay may wait longer for a processor
            // than a peer may otherwise be silent.
            failure_timeout: PATIENT,
            response_hold: PATIENT,
            ..Config::default()
        };
        let clock = WallClock::start();
        let number = || EndpointNum::take().unwrap();
        let mut client = Endpoint::new(
            Calls::default(),
            clock,
            near.halves,
            config(),
            1,
            None,
            number(),
        )
        .unwrap();
        let mut server = Endpoint::new((), clock, far.halves, config(), 2, None, number()).unwrap();
        server.on(ECHO, answer);
        client.on_completion(complete);
        let mut lifecycle = client.lifecycle();
        let session = lifecycle.open(&SessionOptions::DEFAULT).unwrap();
        let offer = lifecycle.offer_of(session).unwrap();
        let (_, answer) = server.lifecycle().accept(to_client, &offer).unwrap();
        client
            .lifecycle()
            .opened(session, to_server, &answer)
            .unwrap();
        Self {
            client,
            server,
            session,
        }
    }

    /// A counter of the client's transport, and of the server's.
    pub(crate) fn near(&mut self, name: &str) -> u64 {
        let (rx, tx) = self.client.lifecycle().halves_mut();
        detail_of::<A>(rx, tx, name)
    }

    pub(crate) fn far(&mut self, name: &str) -> u64 {
        let (rx, tx) = self.server.lifecycle().halves_mut();
        detail_of::<B>(rx, tx, name)
    }

    /// Such a counter, if the transport has it.
    pub(crate) fn near_if(&mut self, name: &str) -> Option<u64> {
        A::DETAILS.contains(&name).then(|| self.near(name))
    }

    pub(crate) fn far_if(&mut self, name: &str) -> Option<u64> {
        B::DETAILS.contains(&name).then(|| self.far(name))
    }

    /// The common counters of both sides.
    pub(crate) fn counters(&mut self) -> [Counters; 2] {
        let (rx, tx) = self.client.lifecycle().halves_mut();
        let near = A::counters(rx, tx);
        let (rx, tx) = self.server.lifecycle().halves_mut();
        [near, B::counters(rx, tx)]
    }

    /// Makes large calls, and then none, and checks that each is complete, with its msgbufs back,
    /// soon after its last packet. The median of a few times counts, because other threads use this
    /// processor, too.
    pub(crate) fn ends_soon(&mut self) {
        let times = (0..11).map(|_| self.silence_after(1_000_000));
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        assert!(times[5] <= Duration::from_millis(1), "{times:?}");
    }

    /// Makes one call. Returns the time from the last packet that arrived until all is as before.
    fn silence_after(&mut self, len: usize) -> Duration {
        let ((_, before), done) = (self.client.pool_use(), self.client.app().done);
        self.call(len, 0);
        let (begin, mut arrived, mut last) = (Instant::now(), 0, Instant::now());
        while self.client.app().done == done || self.client.pool_use().1 != before {
            self.client.run_once();
            self.server.run_once();
            let packets = self.counters().map(|it| it.rx_packets).iter().sum::<u64>();
            if packets != arrived {
                (arrived, last) = (packets, Instant::now());
            }
            assert!(begin.elapsed() < PATIENCE, "a call does not end");
        }
        assert_eq!(self.client.app().failed, 0);
        last.elapsed()
    }

    fn call(&mut self, len: usize, number: u64) {
        let bufs = [(); 2].map(|()| self.client.buf(len).unwrap());
        let [mut request, response] = bufs;
        let bytes = request.data_mut().iter_mut().enumerate();
        bytes.for_each(|(at, byte)| *byte = filling(number, at));
        let session = self.session;
        let (_, mut cx) = self.client.with();
        cx.call(session, ECHO, request, response, Tag(number))
            .unwrap();
    }

    /// Makes `count` calls of `len` bytes, a few at a time, and checks the answers.
    pub(crate) fn calls(&mut self, count: u64, len: usize) {
        let (before, start) = (self.client.app().done, Instant::now());
        let mut made = 0;
        while self.client.app().done < before + count {
            while made < count && made < self.client.app().done - before + 4 {
                self.call(len, made);
                made += 1;
            }
            self.client.run_once();
            self.server.run_once();
            assert!(
                start.elapsed() < PATIENCE,
                "calls of {len} bytes do not end"
            );
        }
        assert_eq!(self.client.app().failed, 0, "calls of {len} bytes");
    }
}
