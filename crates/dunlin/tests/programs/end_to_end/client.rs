//! The client of these tests. It keeps the completions and session events that it gets, and each of
//! its waits has a limit.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dunlin::{
    ConnectError, Done, EndpointBuilder, Nexus, Ran, ReqType, Rpc, RpcError, Session, SessionEvent,
    Tag,
};

use crate::end_to_end::Named;
use crate::end_to_end::server::{MARK, STATS, Stats, answer_to};

/// The default time within which a failed peer is found.
pub(crate) const FAILURE: Duration = Duration::from_secs(1);
/// Time that a busy machine may add to the failure time-out.
pub(crate) const MARGIN: Duration = Duration::from_millis(700);
/// No wait takes this long unless a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Received {
    pub(crate) done: Vec<Done>,
    pub(crate) events: Vec<SessionEvent>,
}

pub(crate) struct Client<T: Named> {
    pub(crate) rpc: Rpc<T, Received>,
    next_mark: u64,
}

impl<T: Named> Client<T> {
    pub(crate) fn new() -> Self {
        Self::at("127.0.0.1:0", 0)
    }

    /// A client whose nexus and UDP socket have these addresses.
    pub(crate) fn at(address: &str, udp_port: u16) -> Self {
        let nexus = Nexus::bind(address).unwrap();
        let builder = nexus.endpoint_builder::<T>();
        Self::of(builder.transport(|options| T::set_udp_port(options, udp_port)))
    }

    /// A client whose endpoint differs from the default.
    pub(crate) fn with(change: impl FnOnce(EndpointBuilder<T>) -> EndpointBuilder<T>) -> Self {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        Self::of(change(nexus.endpoint_builder()))
    }

    fn of(builder: EndpointBuilder<T>) -> Self {
        let mut rpc = builder.build(Received::default()).unwrap();
        rpc.on_completion(|heard, done, _| heard.done.push(done));
        rpc.on_session(|heard, event, _| heard.events.push(event));
        Self { rpc, next_mark: 0 }
    }

    pub(crate) fn connect(&mut self, server: SocketAddr) -> Session {
        self.try_connect(server).unwrap()
    }

    pub(crate) fn try_connect(&mut self, server: SocketAddr) -> Result<Session, ConnectError> {
        self.rpc.connect_blocking(server)
    }

    pub(crate) fn call(&mut self, session: Session, kind: ReqType, data: &[u8], tag: u64) {
        let request = self.rpc.cx().copy(data).unwrap();
        let response = self.rpc.buf(64).unwrap();
        let called = self.rpc.call(session, kind, request, response, Tag(tag));
        called.unwrap();
    }

    /// Issues a MARK with a number that no other call has.
    pub(crate) fn mark(&mut self, session: Session) {
        self.next_mark += 1;
        self.call(session, MARK, &self.next_mark.to_le_bytes(), self.next_mark);
    }

    /// Runs until `count` calls have ended, and returns them.
    pub(crate) fn finish(&mut self, count: usize, limit: Duration) -> Vec<Done> {
        self.run_within(limit, "calls", |heard| heard.done.len() >= count);
        let done = std::mem::take(&mut self.rpc.app_mut().done);
        assert_eq!(done.len(), count, "a call ended twice");
        done
    }

    pub(crate) fn run_within(
        &mut self,
        limit: Duration,
        what: &str,
        ready: impl Fn(&Received) -> bool,
    ) {
        let begin = Instant::now();
        while !ready(self.rpc.app()) {
            self.rpc.run_once();
            let took = begin.elapsed();
            assert!(took < limit, "{what} took longer than {limit:?}");
        }
    }

    /// One RPC that must succeed.
    pub(crate) fn exchange(&mut self, session: Session) {
        self.mark(session);
        let done = self.finish(1, PATIENCE).remove(0);
        assert_eq!(done.result, Ok(()));
        assert_eq!(done.response.data(), answer_to(done.tag.0).to_le_bytes());
    }

    /// Runs exchanges for this time.
    pub(crate) fn exchange_for(&mut self, session: Session, span: Duration) -> u32 {
        let begin = Instant::now();
        let mut count = 0;
        while begin.elapsed() < span {
            self.exchange(session);
            count += 1;
        }
        count
    }

    pub(crate) fn stats(&mut self, session: Session) -> Stats {
        self.call(session, STATS, b"", 0);
        let done = self.finish(1, PATIENCE).remove(0);
        assert_eq!(done.result, Ok(()));
        Stats::decode(done.response.data())
    }

    /// Runs for 1.6 s, in which the server frees every held response, then asks for its counts.
    pub(crate) fn stats_at_rest(&mut self, session: Session) -> Stats {
        self.rpc.run_for(Duration::from_millis(1_600));
        self.stats(session)
    }
}

/// Asserts that all calls ended because the peer has failed. Returns the number of calls that were
/// never transmitted, which provably have not run.
pub(crate) fn assert_peer_failed(done: &[Done]) -> usize {
    for done in done {
        let ran = match done.transmitted() {
            true => Ran::Unknown,
            false => Ran::No,
        };
        let failed = Err(RpcError::PeerFailed(ran));
        assert_eq!(done.result, failed, "{:?}", done.tag);
    }
    done.iter().filter(|done| !done.transmitted()).count()
}
