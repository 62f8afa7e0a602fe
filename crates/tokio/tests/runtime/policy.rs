//! Tower's layers that repeat and hedge, with our policy.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::{Channel, ChannelError, Ran, ReqType};
use dunlin_testkit::address::free_port;
use dunlin_tokio::Repeat;
use tower::hedge::Hedge;
use tower::retry::Retry;
use tower::timeout::Timeout;
use tower::{Service, ServiceExt};

use crate::service::Seen;
use crate::{Way, block_on, runtime, worker};

/// Takes the number of a job and its time; postcard encodes each as one byte.
const RUN: ReqType = ReqType(1);
/// Never completes.
const HANG: ReqType = ReqType(2);

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn only_calls_that_may_run_twice_are_repeated_after_they_ran() {
    let (handlers, seen) = (runtime(), Arc::<Seen>::default());
    let server = Way::Shm.serve(1, &worker(&seen), handlers.handle());
    let channel = Way::Shm.open(&server);
    block_on(channel.ready()).unwrap();
    let begun = || seen.begun.load(Ordering::SeqCst);
    // Each attempt ends at a deadline of its own, and may have run.
    for (idempotent, runs) in [(false, 1), (true, 3)] {
        let channels = [(); 3].map(|()| channel.clone());
        let (before, turns) = (begun(), Turns::new(channels, Some(SHORT)));
        let call = channel.call(HANG, b"").idempotent(idempotent);
        let end = block_on(Retry::new(Repeat::up_to(2), turns).oneshot(call)).unwrap_err();
        assert_eq!(end.ran(), Ran::Unknown, "{end}");
        assert_eq!(begun() - before, runs);
    }
    // The error of a layer below does not say whether the call ran.
    for (idempotent, runs) in [(false, 1), (true, 3)] {
        let (before, timed) = (begun(), Timeout::new(channel.clone(), SHORT));
        let again = Retry::new(Repeat::up_to(2), timed);
        let call = channel.call(HANG, b"").idempotent(idempotent);
        block_on(again.oneshot(call)).unwrap_err();
        assert_eq!(begun() - before, runs);
    }
}

#[test]
fn no_call_is_repeated_after_its_deadline() {
    let (handlers, seen) = (runtime(), Arc::<Seen>::default());
    let server = Way::Shm.serve(1, &worker(&seen), handlers.handle());
    let channel = Way::Shm.open(&server);
    block_on(channel.ready()).unwrap();
    let again = Retry::new(Repeat::up_to(2), channel.clone());
    let call = channel.call(HANG, b"").idempotent(true).deadline(SHORT);
    let end = block_on(again.oneshot(call)).unwrap_err();
    assert_eq!(end.ran(), Ran::Unknown, "{end}");
    // A repeat would be another call of the channel, even if it is late and is not sent.
    let last = block_on(channel.call(RUN, &[5, 0])).unwrap();
    assert_eq!(last.data(), [5]);
    while channel.counters().answered == 0 {
        std::thread::yield_now();
    }
    assert_eq!(channel.counters().calls, 2);
}

/// A channel to an address without a server: each attempt ends at once, and has not run.
fn nowhere() -> Channel {
    let hub = dunlin::Hub::builder().listen("127.0.0.1:0");
    let channel = hub.start().unwrap().channel().patience(Duration::ZERO);
    channel.address(free_port()).open().unwrap()
}

/// The error of the last attempt says that this attempt has not run. An earlier one may have.
#[test]
fn the_error_after_repeats_answers_for_all_attempts() {
    let (handlers, seen) = (runtime(), Arc::<Seen>::default());
    let server = Way::Shm.serve(1, &worker(&seen), handlers.handle());
    let channel = Way::Shm.open(&server);
    block_on(channel.ready()).unwrap();
    let call = || channel.call(HANG, b"").idempotent(true);
    let turns = || Turns::new([channel.clone(), nowhere(), nowhere()], Some(SHORT));
    let end = block_on(Retry::new(Repeat::up_to(2), turns()).oneshot(call())).unwrap_err();
    assert_eq!(end.ran(), Ran::Unknown, "{end}");
    assert!(matches!(end, ChannelError::Call { .. }), "{end}");
    // The same with a layer between the policy and the channel.
    let timed = Timeout::new(turns(), 10 * SHORT);
    let end = block_on(Retry::new(Repeat::up_to(2), timed).oneshot(call())).unwrap_err();
    let end = end.downcast::<ChannelError>().unwrap();
    assert_eq!(end.ran(), Ran::Unknown, "{end}");
    assert_eq!(seen.begun.load(Ordering::SeqCst), 2);
    // If no attempt has run, the last error is returned unchanged.
    let turns = Turns::new([(); 3].map(|()| nowhere()), Some(SHORT));
    let end = block_on(Retry::new(Repeat::up_to(2), turns).oneshot(call())).unwrap_err();
    assert!(matches!(end, ChannelError::NoServer(_)), "{end}");
}

#[test]
fn a_call_that_has_not_run_is_repeated() {
    let (handlers, seen) = (runtime(), Arc::<Seen>::default());
    let server = Way::Shm.serve(1, &worker(&seen), handlers.handle());
    let channels = [nowhere(), nowhere(), Way::Shm.open(&server)];
    let first = channels[0].clone();
    let turns = Turns::new(channels, None);
    let call = first.call(RUN, &[5, 0]);
    let repeats = Repeat::up_to(2).backoff(SHORT, SHORT);
    let answer = block_on(Retry::new(repeats, turns).oneshot(call)).unwrap();
    assert_eq!(answer.data(), [5]);
    assert_eq!(seen.run.load(Ordering::SeqCst), 1);
}

/// Sends each attempt over the next channel, with a deadline of its own if there is a `span`.
#[derive(Clone)]
struct Turns {
    channels: [Channel; 3],
    next: usize,
    span: Option<Duration>,
}

impl Turns {
    fn new(channels: [Channel; 3], span: Option<Duration>) -> Self {
        Self {
            channels,
            next: 0,
            span,
        }
    }
}

impl Service<dunlin::Outgoing> for Turns {
    type Response = dunlin::Answer;
    type Error = ChannelError;
    type Future = dunlin::Outgoing;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), ChannelError>> {
        Service::poll_ready(&mut self.channels[self.next], context)
    }

    fn call(&mut self, call: dunlin::Outgoing) -> dunlin::Outgoing {
        let next = self.next;
        self.next += 1;
        let call = match self.span {
            Some(span) => call.deadline(span),
            None => call,
        };
        Service::call(&mut self.channels[next], call)
    }
}

#[test]
fn only_idempotent_calls_are_hedged() {
    let (handlers, seen) = (runtime(), Arc::<Seen>::default());
    let server = Way::Shm.serve(1, &worker(&seen), handlers.handle());
    let channel = Way::Shm.open(&server);
    block_on(channel.ready()).unwrap();
    let begun = || seen.begun.load(Ordering::SeqCst);
    block_on(async {
        for (idempotent, runs) in [(false, 1), (true, 2)] {
            let before = begun();
            let latencies = [10; 8];
            let mut hedged = Hedge::new_with_mock_latencies(
                channel.clone(),
                Repeat::up_to(1),
                4,
                0.5,
                Duration::from_secs(10),
                &latencies,
            );
            let call = channel.call(HANG, b"").idempotent(idempotent);
            let ready = hedged
                .ready()
                .await
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(ready.call(call.deadline(6 * SHORT)).await.is_err());
            assert_eq!(begun() - before, runs);
        }
    });
}
