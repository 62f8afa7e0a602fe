//! Channels as tower services: layers around them, policies that ask `ran()`, and typed clients.

use std::future::{Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use dunlin::channel::{Pick, ThroughError};
use dunlin::service::{Context, Error, Failure, Postcard};
use dunlin::{Answer, ChannelError, Cx, Outgoing, Ran, RpcError, service};
use dunlin_testkit::wait::block_on_tokio as block_on;
use tower::balance::p2c::Balance;
use tower::discover::ServiceList;
use tower::hedge::Hedge;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};
use tower::load_shed::error::Overloaded;
use tower::retry::{Policy, Retry};
use tower::timeout::error::Elapsed;
use tower::{Service, ServiceBuilder, ServiceExt};

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, HOLD, PATIENCE, Way, free_port, own_host, until};

const ANY: &str = "127.0.0.1:0";
const SHORT: Duration = Duration::from_millis(50);

/// Repeats calls that have not run, and calls that may run twice. The number is how many times; the
/// span, if there is one, is the deadline of each repeat.
#[derive(Clone, Debug)]
struct Again(u32, Option<Duration>);

impl Policy<Outgoing, Answer, ChannelError> for Again {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        call: &mut Outgoing,
        end: &mut Result<Answer, ChannelError>,
    ) -> Option<Ready<()>> {
        let may = match end.as_ref().err()?.ran() {
            Ran::No => true,
            Ran::Unknown => call.is_idempotent(),
            Ran::Yes => false,
        };
        self.0 = self.0.checked_sub(1)?;
        let has_time = self.1.is_some() || call.left().is_none_or(|left| left > SHORT / 10);
        (may && has_time).then(|| ready(()))
    }

    fn clone_request(&mut self, call: &Outgoing) -> Option<Outgoing> {
        let copy = call.duplicate()?;
        Some(match self.1 {
            Some(span) => copy.deadline(span),
            None => copy,
        })
    }
}

impl tower::hedge::Policy<Outgoing> for Again {
    fn clone_request(&self, call: &Outgoing) -> Option<Outgoing> {
        call.duplicate()
    }

    fn can_retry(&self, call: &Outgoing) -> bool {
        call.is_idempotent()
    }
}

#[test]
fn poll_ready_waits_for_room_and_keeps_it() {
    let server = Server::start(Way::Shm, ANY, Role::Holds);
    let channel = Way::Shm.channel(server.address).queue(1).open().unwrap();
    block_on(async {
        // Ten concurrent calls share one place, and none fails.
        let calls = (0..10_u8).map(|byte| {
            let mut channel = channel.clone();
            async move {
                let call = channel.call(ECHO, &[byte]);
                let ready = ServiceExt::<Outgoing>::ready(&mut channel).await?;
                let answer = Service::call(ready, call).await?;
                assert_eq!(answer.data(), [byte]);
                Ok::<(), ChannelError>(())
            }
        });
        for end in futures::future::join_all(calls).await {
            end.unwrap();
        }
        // A handle that is ready has reserved the room; dropping the handle frees it.
        let mut ready = channel.clone();
        ServiceExt::<Outgoing>::ready(&mut ready).await.unwrap();
        let full = channel.call(ECHO, b"").await;
        assert!(matches!(full, Err(ChannelError::Full)));
        drop(ready);
        channel.call(ECHO, b"").await.unwrap();
        // So does dropping a call that has the room and is not sent.
        let mut ready = channel.clone();
        ServiceExt::<Outgoing>::ready(&mut ready).await.unwrap();
        drop(Service::call(&mut ready, channel.call(ECHO, b"")));
        let permit = channel.permit().await;
        drop(channel.call(ECHO, b"").permit(permit));
        channel.call(ECHO, b"").await.unwrap();
    });
}

#[test]
fn layers_of_time_limit_and_load_wrap_a_channel() {
    let server = Server::start(Way::Shm, ANY, Role::Holds);
    let channel = Way::Shm.channel(server.address).queue(1).open().unwrap();
    block_on(async {
        let slow = ServiceBuilder::new()
            .timeout(SHORT)
            .service(channel.clone());
        let end = slow.oneshot(channel.call(HOLD, b"")).await.unwrap_err();
        assert!(end.is::<Elapsed>(), "{end}");
        // The layer has dropped the call, so the server gives its request up.
        until(|| server.seen.given_up.load(Ordering::Relaxed) == 1);
        let permit = channel.permit().await;
        let shed = ServiceBuilder::new().load_shed().service(channel.clone());
        let end = shed.oneshot(channel.call(ECHO, b"")).await.unwrap_err();
        assert!(end.is::<Overloaded>(), "{end}");
        drop(permit);
        let mut limited = ServiceBuilder::new()
            .concurrency_limit(1)
            .service(channel.clone());
        let call = limited
            .ready()
            .await
            .unwrap()
            .call(channel.call(ECHO, b"a"));
        let mut second = limited.clone();
        let waits = second.ready();
        assert!(tokio::time::timeout(SHORT, waits).await.is_err());
        assert_eq!(call.await.unwrap().data(), b"a");
        assert!(second.ready().await.is_ok());
    });
}

#[test]
fn a_policy_repeats_what_has_not_run_and_what_may_run_twice() {
    let address = free_port();
    let channel = Way::Shm.channel(&address).patience(SHORT).open().unwrap();
    let starts = std::thread::spawn({
        let address = address.clone();
        move || {
            std::thread::sleep(4 * SHORT);
            Server::start(Way::Shm, &address, Role::Holds)
        }
    });
    block_on(async {
        let mut again = Retry::new(Again(100, None), channel.clone());
        let call = channel.call(ECHO, b"late");
        assert_eq!(
            again
                .ready()
                .await
                .unwrap()
                .call(call)
                .await
                .unwrap()
                .data(),
            b"late"
        );
    });
    let server = starts.join().unwrap();
    let held = || server.seen.held.load(Ordering::Relaxed);
    // The attempts share the deadline of the call, unless the policy gives them others.
    for (idempotent, own, runs) in [
        (false, Some(SHORT), 1),
        (true, None, 1),
        (true, Some(SHORT), 3),
    ] {
        let before = held();
        let again = Retry::new(Again(2, own), channel.clone());
        let call = channel.call(HOLD, b"").idempotent(idempotent);
        let end = block_on(again.oneshot(call.deadline(SHORT))).unwrap_err();
        assert_eq!(end.ran(), Ran::Unknown, "{end}");
        assert_eq!(held() - before, runs);
    }
}

#[test]
fn a_hedge_sends_an_idempotent_call_twice() {
    let start = |role| Server::start(Way::Shm, &own_host(), role);
    let [stuck, server] = [Role::Keeps, Role::Answers].map(start);
    let channel = Way::Shm
        .channel(stuck.address)
        .address(server.address.to_string());
    let channel = channel.pick(Pick::RoundRobin).open().unwrap();
    let both = |channel: &dunlin::Channel| {
        let addresses = channel.state().addresses;
        addresses
            .iter()
            .filter(|it| it.state == dunlin::channel::State::Ready)
            .count()
            == 2
    };
    until(|| both(&channel));
    block_on(async {
        let [period, latencies] = [Duration::from_secs(10), SHORT];
        let latencies = [u64::try_from(latencies.as_millis()).unwrap(); 8];
        let mut hedged = Hedge::new_with_mock_latencies(
            channel.clone(),
            Again(0, None),
            4,
            0.5,
            period,
            &latencies,
        );
        // One of the two attempts of each call reaches the server that answers.
        for byte in 0..2_u8 {
            let call = channel.call(HOLD, &[byte]).idempotent(true);
            let answer = hedged_call(&mut hedged, call).await;
            assert_eq!(answer.data(), [byte]);
        }
    });
    assert!(stuck.seen.held.load(Ordering::Relaxed) > 0);
}

async fn hedged_call(hedged: &mut Hedge<dunlin::Channel, Again>, call: Outgoing) -> Answer {
    let ready = hedged.ready().await;
    let end = ready
        .unwrap_or_else(|error| panic!("{error}"))
        .call(call)
        .await;
    end.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn channels_are_balanced_by_their_load() {
    let servers = [(); 2].map(|()| Server::start(Way::Shm, &own_host(), Role::Answers));
    let channels = servers
        .each_ref()
        .map(|server| Way::Shm.open(server.address));
    block_on(async {
        let list = ServiceList::new::<Outgoing>(channels.clone());
        let loads = PendingRequestsDiscover::new(list, CompleteOnResponse::default());
        let mut balance = Balance::new(loads);
        for byte in 0..100_u8 {
            // A call made over one channel may be sent over any.
            let call = channels[0].call(HOLD, &[byte]);
            let ready = balance
                .ready()
                .await
                .unwrap_or_else(|error| panic!("{error}"));
            let end = ready.call(call).await;
            assert_eq!(end.unwrap_or_else(|error| panic!("{error}")).data(), [byte]);
        }
    });
    let held = servers.map(|server| server.seen.held.load(Ordering::Relaxed));
    assert_eq!(held.iter().sum::<usize>(), 100);
    assert!(held.iter().all(|count| *count > 20), "{held:?}");
}

#[service(codec = Postcard)]
trait Doubles {
    #[method(1)]
    fn twice(number: u64) -> Result<u64, String>;
    #[notify(2)]
    fn note(number: u64);
}

static NOTED: AtomicU32 = AtomicU32::new(0);

impl DoublesPoll for () {
    fn twice(&mut self, number: u64, _: &mut Cx<'_>, _: Context<'_>) -> Result<u64, String> {
        number.checked_mul(2).ok_or_else(|| "too large".to_owned())
    }

    fn note(&mut self, _: u64, _: &mut Cx<'_>, _: Context<'_>) {
        NOTED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_typed_client_goes_through_layers() {
    let server = dunlin::Server::builder().nexus(Way::Shm.nexus());
    let running = server
        .poll(|_| (), DoublesPoll::register)
        .start(ANY)
        .unwrap();
    let channel = Way::Shm.channel(running.address()).queue(2).open().unwrap();
    let layers = ServiceBuilder::new()
        .timeout(SHORT)
        .service(channel.clone());
    let doubles = DoublesClient::over(channel.through(layers));
    block_on(async {
        assert_eq!(doubles.twice(&21).deadline(PATIENCE).await.unwrap(), 42);
        let end = doubles.twice(&u64::MAX).await;
        assert!(matches!(end, Err(Failure::Method(why)) if why == "too large"));
        doubles.note(&1).unwrap();
        until(|| NOTED.load(Ordering::Relaxed) == 1);
    });
    drop(running);
    // An error of the layer does not state whether the handler ran; an error of the channel does.
    let nowhere = Way::Shm.channel(free_port()).open().unwrap();
    let layers = ServiceBuilder::new()
        .timeout(SHORT)
        .service(nowhere.clone());
    let doubles = DoublesClient::over(nowhere.through(layers));
    let end = block_on(doubles.twice(&1)).unwrap_err();
    assert!(
        matches!(end, Failure::Call(ThroughError::Layer(_))),
        "{end}"
    );
    assert_eq!(end.ran(), Ran::Unknown);
    let hasty = Way::Shm.channel(free_port()).patience(Duration::ZERO);
    let hasty = hasty.open().unwrap();
    let layers = ServiceBuilder::new()
        .timeout(PATIENCE)
        .service(hasty.clone());
    let end = block_on(DoublesClient::over(hasty.through(layers)).twice(&1)).unwrap_err();
    let is_channels = matches!(&end, Failure::Call(ThroughError::Channel(_)));
    assert!(is_channels && end.ran() == Ran::No, "{end}");
}

/// Whether the call's deadline passed before the request was sent.
fn is_late<T>(end: Result<T, Failure<String, ThroughError>>) -> bool {
    let late = RpcError::DeadlinePassed(Ran::No);
    matches!(
        end,
        Err(Failure::Call(ThroughError::Channel(ChannelError::Call {
            error: Error::Rpc(error),
            ran: Ran::No,
        }))) if error == late
    )
}

#[test]
fn a_deadline_counts_the_time_that_layers_take() {
    let server = dunlin::Server::builder().nexus(Way::Shm.nexus());
    let running = server
        .poll(|_| (), DoublesPoll::register)
        .start(ANY)
        .unwrap();
    let channel = Way::Shm.open(running.address());
    let limited = ServiceBuilder::new()
        .concurrency_limit(1)
        .service(channel.clone());
    let doubles = DoublesClient::over(channel.through(limited.clone()));
    crate::channel::block_on(channel.ready()).unwrap();
    let mut busy = limited;
    crate::channel::block_on(busy.ready()).unwrap();
    // This executor has no timers, so the channel's thread wakes the task. Later waits end too.
    for _ in 0..3 {
        let begin = Instant::now();
        assert!(is_late(crate::channel::block_on(
            doubles.twice(&21).deadline(SHORT)
        )));
        assert!((SHORT..PATIENCE / 2).contains(&begin.elapsed()));
    }
    // No server has this endpoint, so the call is over before the layer is ready.
    let nowhere = doubles.twice(&21).endpoint(u16::MAX).deadline(PATIENCE);
    assert!(matches!(
        crate::channel::block_on(nowhere),
        Err(Failure::Call(ThroughError::Channel(ChannelError::Endpoint)))
    ));
    // One that waits without a deadline, or with a later one, is sent once the layer is ready.
    let calls = [doubles.twice(&21), doubles.twice(&21).deadline(PATIENCE)];
    let mut calls = calls.map(Box::pin);
    let mut idle = task::Context::from_waker(task::Waker::noop());
    for call in &mut calls {
        assert!(call.as_mut().poll(&mut idle).is_pending());
    }
    drop(busy);
    let [first, second] = calls;
    assert_eq!(crate::channel::block_on(first).unwrap(), 42);
    assert_eq!(crate::channel::block_on(second).unwrap(), 42);
    // A layer that itself waits with the call.
    let slow = tower::service_fn(|call: Outgoing| async {
        tokio::time::sleep(2 * SHORT).await;
        call.await
    });
    let doubles = DoublesClient::over(channel.through(slow));
    assert!(is_late(block_on(doubles.twice(&21).deadline(SHORT))));
    // Two calls were sent. Three ended while they waited for the layer, and one after it.
    until(|| channel.counters().calls == 6);
    let counters = channel.counters();
    assert_eq!(counters.attempts, 2, "no late call was sent");
    assert_eq!((counters.answered, counters.failed), (2, 4));
    assert_eq!(counters.expired, 4);
}

/// A layer that passes everything on. Its clones share a count.
#[derive(Clone)]
struct Counted {
    channel: dunlin::Channel,
    _clones: Arc<()>,
}

impl Service<Outgoing> for Counted {
    type Response = Answer;
    type Error = ChannelError;
    type Future = Outgoing;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), ChannelError>> {
        Service::poll_ready(&mut self.channel, context)
    }

    fn call(&mut self, call: Outgoing) -> Outgoing {
        Service::call(&mut self.channel, call)
    }
}

#[test]
fn a_typed_call_that_is_dropped_before_it_is_sent_leaves_nothing() {
    let server = dunlin::Server::builder().nexus(Way::Shm.nexus());
    let running = server
        .poll(|_| (), DoublesPoll::register)
        .start(ANY)
        .unwrap();
    let channel = Way::Shm.channel(running.address()).queue(1).open().unwrap();
    let clones = Arc::new(());
    let count = || Arc::strong_count(&clones);
    let counted = Counted {
        channel: channel.clone(),
        _clones: Arc::clone(&clones),
    };
    let doubles = DoublesClient::over(channel.through(counted));
    let before = count();
    let new = doubles.twice(&1);
    assert_eq!(count(), before + 1);
    drop(new);
    assert_eq!(count(), before);
    // One that waits for room, and is woken for it.
    let permit = block_on(channel.permit());
    let mut first = Box::pin(doubles.twice(&1));
    let mut idle = task::Context::from_waker(task::Waker::noop());
    assert!(first.as_mut().poll(&mut idle).is_pending());
    let mut second = Box::pin(doubles.twice(&21));
    let (polled, poll) = std::sync::mpsc::channel();
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let second = poll_fn(|task| {
            let state = second.as_mut().poll(task);
            let _ = polled.send(state.is_pending());
            state
        });
        ended.send(block_on(second))
    });
    assert!(poll.recv().unwrap(), "the second call waits");
    drop(permit);
    drop(first);
    // Its drop wakes the next one. A call that was sent has dropped its clone.
    let second = end.recv_timeout(Duration::from_secs(30));
    assert_eq!(second.expect("the next one was woken").unwrap(), 42);
    assert_eq!(count(), before);
    assert_eq!(block_on(doubles.twice(&21)).unwrap(), 42);
    assert_eq!(count(), before);
}
