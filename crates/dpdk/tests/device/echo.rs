//! A client and a server that echoes, over any two transports, in one thread.

use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, PeerId, Transport};
use dunlin_core::{
    Config, Done, Endpoint, EndpointNum, Nanos, Request, RpcError, Session, SessionOptions, Tag,
};
use dunlin_testkit::clock::WallClock;
use dunlin_testkit::wait::PATIENCE;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::counters::Counters;
use dunlin_wire::ReqType;

const ECHO: ReqType = ReqType(1);

/// Calls in flight at a time.
const TOGETHER: u64 = 4;

/// How long a peer may be silent.
const PATIENT: Nanos = Nanos::from_secs(30);

/// The calls of the client.
#[derive(Default)]
struct Calls {
    done: u64,
    wrong: u64,
    /// Calls that ended because their peer failed.
    failed: u64,
}

/// Two endpoints with a session between them.
pub(crate) struct Echo<A: Transport, B: Transport> {
    client: Endpoint<A, WallClock, Calls>,
    server: Endpoint<B, WallClock, ()>,
    session: Session,
    /// The server for the client, and the client for the server.
    peers: [PeerId; 2],
}

/// An endpoint as the control plane would describe it: one of another host.
pub(crate) fn info(number: u8) -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([number; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some([192, 0, 2, number].into()),
    }
}

/// A byte of a request.
fn filling(tag: u64, at: usize) -> u8 {
    (tag * 29 + (at * 11 + at / 253) as u64).to_le_bytes()[0]
}

fn answer(_: &mut (), request: Request<'_>, cx: &mut dunlin_core::Cx<'_>) {
    let bytes = request.data().to_vec();
    request.reply(cx, bytes.len(), |out| out.copy_from_slice(&bytes));
}

fn complete(calls: &mut Calls, done: Done, _: &mut dunlin_core::Cx<'_>) {
    calls.done += 1;
    if matches!(done.result, Err(RpcError::PeerFailed(_))) {
        calls.failed += 1;
        return;
    }
    let (tag, response) = (done.tag.0, done.response.data());
    let mut bytes = response.iter().enumerate();
    let is_right = bytes.all(|(at, byte)| *byte == filling(tag, at));
    let is_whole = response.len() == done.request.data().len();
    if done.result != Ok(()) || !is_whole || !is_right {
        println!("call {tag}: {:?}, {} bytes", done.result, response.len());
        calls.wrong += 1;
    }
}

/// Opens a session. `peers`: the server for the client, and the client for the server.
fn open<A: Transport, B: Transport>(
    client: &mut Endpoint<A, WallClock, Calls>,
    server: &mut Endpoint<B, WallClock, ()>,
    [to_server, to_client]: [PeerId; 2],
) -> Session {
    let session = client.lifecycle().open(&SessionOptions::DEFAULT).unwrap();
    let offer = client.lifecycle().offer_of(session).unwrap();
    let (_, answer) = server.lifecycle().accept(to_client, &offer).unwrap();
    let opened = client.lifecycle().opened(session, to_server, &answer);
    opened.unwrap();
    session
}

impl<A: Connect, B: Connect> Echo<A, B> {
    /// Two endpoints that wait for each other for long: on a busy machine, packets may wait longer
    /// for a processor than a peer may otherwise be silent.
    pub(crate) fn new(near: Halves<A::Rx, A::Tx>, far: Halves<B::Rx, B::Tx>) -> Self {
        Self::with_patience(near, far, PATIENT)
    }

    /// As [`Self::new`], but a peer that is silent for this time has failed.
    pub(crate) fn with_patience(
        mut near: Halves<A::Rx, A::Tx>,
        mut far: Halves<B::Rx, B::Tx>,
        silence: Nanos,
    ) -> Self {
        let (pending, offer) = A::offer(&mut near.rx, &mut near.tx, &info(2)).unwrap();
        let offer = B::whole(A::parts(offer)).unwrap();
        let (to_client, answer_to) = B::accept(&mut far.rx, &mut far.tx, &info(1), offer).unwrap();
        let answer_to = A::whole(B::parts(answer_to)).unwrap();
        let to_server = A::complete(&mut near.rx, &mut near.tx, pending, answer_to).unwrap();
        let config = || Config {
            hugepages: false,
            failure_timeout: silence,
            response_hold: silence,
            ..Config::default()
        };
        let clock = WallClock::start();
        let number = || EndpointNum::take().unwrap();
        let client = Endpoint::new(Calls::default(), clock, near, config(), 1, None, number());
        let mut client = client.unwrap();
        let mut server = Endpoint::new((), clock, far, config(), 2, None, number()).unwrap();
        server.on(ECHO, answer);
        client.on_completion(complete);
        let peers = [to_server, to_client];
        Self {
            session: open(&mut client, &mut server, peers),
            client,
            server,
            peers,
        }
    }

    /// Opens another session after the first one has failed.
    pub(crate) fn open_again(&mut self) {
        self.session = open(&mut self.client, &mut self.server, self.peers);
    }

    /// Makes calls of `len` bytes while another program takes a turn after each of both sides,
    /// until all of them and their session have failed.
    pub(crate) fn fail_while(&mut self, len: usize, mut turn: impl FnMut()) {
        let begin = Instant::now();
        for number in 0..TOGETHER {
            self.call(len, number);
        }
        while self.client.app().failed < TOGETHER || self.client.session_count() > 0 {
            self.client.run_once();
            turn();
            self.server.run_once();
            turn();
            assert!(begin.elapsed() < PATIENCE, "the session does not fail");
        }
        let ended = std::mem::take(self.client.with().0);
        assert_eq!((ended.failed, ended.wrong), (TOGETHER, 0));
    }

    fn call(&mut self, len: usize, number: u64) {
        let [mut request, response] = [(); 2].map(|()| self.client.buf(len).unwrap());
        let bytes = request.data_mut().iter_mut().enumerate();
        bytes.for_each(|(at, byte)| *byte = filling(number, at));
        let session = self.session;
        let (_, mut cx) = self.client.with();
        cx.call(session, ECHO, request, response, Tag(number))
            .unwrap();
    }

    /// Makes `count` calls of `len` bytes, and checks the answers.
    pub(crate) fn calls(&mut self, count: u64, len: usize) {
        self.calls_while(count, len, || {});
    }

    /// Like [`Self::calls`], but calls `turn` after each turn of the client and of the server.
    pub(crate) fn calls_while(&mut self, count: u64, len: usize, mut turn: impl FnMut()) {
        let (before, begin, mut made) = (self.client.app().done, Instant::now(), 0);
        while self.client.app().done < before + count {
            while made < count && made < self.client.app().done - before + TOGETHER {
                self.call(len, made);
                made += 1;
            }
            self.client.run_once();
            turn();
            self.server.run_once();
            turn();
            assert!(
                begin.elapsed() < PATIENCE,
                "calls of {len} bytes do not end"
            );
        }
        let calls = self.client.app();
        assert_eq!((calls.wrong, calls.failed), (0, 0), "calls of {len} bytes");
    }

    /// Makes a single call, of `len` bytes. Returns the time from the last packet that
    /// arrived until the call is complete and its msgbufs are back.
    pub(crate) fn silence_after(&mut self, len: usize) -> Duration {
        let (_, before) = self.client.pool_use();
        let done = self.client.app().done;
        self.call(len, 0);
        let (begin, mut arrived, mut last) = (Instant::now(), 0, Instant::now());
        loop {
            self.client.run_once();
            self.server.run_once();
            let packets: u64 = self.counters().map(|it| it.rx_packets).iter().sum();
            if packets != arrived {
                (arrived, last) = (packets, Instant::now());
            }
            let is_back = self.client.pool_use().1 == before;
            if self.client.app().done > done && is_back {
                assert_eq!(self.client.app().wrong, 0);
                return last.elapsed();
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "a call of {len} bytes does not end"
            );
        }
    }

    /// Checks that large calls end soon after their last packet. The median of a few times counts,
    /// because other threads use this processor, too.
    pub(crate) fn ends_soon(&mut self) {
        let times = (0..11).map(|_| self.silence_after(1_000_000));
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        assert!(times[5] <= Duration::from_millis(1), "{times:?}");
    }

    /// The counters of both sides.
    pub(crate) fn counters(&mut self) -> [Counters; 2] {
        let (rx, tx) = self.client.lifecycle().halves_mut();
        let near = A::counters(rx, tx);
        let (rx, tx) = self.server.lifecycle().halves_mut();
        [near, B::counters(rx, tx)]
    }

    /// A counter that only this transport has, at both sides.
    pub(crate) fn details(&mut self, name: &str) -> [u64; 2] {
        let (mut near, mut far) = (0, 0);
        let look = |known: &str, count: u64, to: &mut u64| {
            if known == name {
                *to = count;
            }
        };
        let (rx, tx) = self.client.lifecycle().halves_mut();
        A::details(rx, tx, &mut |known, count| look(known, count, &mut near));
        let (rx, tx) = self.server.lifecycle().halves_mut();
        B::details(rx, tx, &mut |known, count| look(known, count, &mut far));
        [near, far]
    }

    /// Makes calls of all lengths: in one packet, in several, in a whole window. No packet may be
    /// dropped.
    pub(crate) fn all_lengths(&mut self) {
        for len in [8, 32, 1000, 1441, 20_000, 200_000] {
            self.calls(if len > 10_000 { 3 } else { 40 }, len);
        }
        for counters in self.counters() {
            for (name, count) in counters.named() {
                let is_drop = name.contains("dropped");
                let is_loss = ["rx_overflow", "rx_corrupt"].contains(&name);
                assert!(count == 0 || !(is_drop || is_loss), "{name}: {count}");
            }
        }
    }
}
