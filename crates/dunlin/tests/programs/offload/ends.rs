//! Clients that give up, executors that are shut down, and servers that end.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dunlin::service::Failure;
use dunlin::{AsyncError, Caller, ErrorCode, ReqType, RpcError};

use crate::offload::{Bench, WAYS, until};

/// Waits until a count of handlers is reached.
async fn reaches(cx: &Caller, count: &AtomicU64, at_least: u64) {
    while count.load(Ordering::SeqCst) < at_least {
        cx.sleep(Duration::from_millis(1)).await;
    }
}

/// The code with which a server has answered.
pub(crate) fn code<T: Debug, E: Debug>(ended: Result<T, Failure<E>>) -> ErrorCode {
    match ended {
        Err(Failure::Call(AsyncError::Rpc(RpcError::Rejected(code, _)))) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_gives_up_drops_the_handlers_future() {
    for way in WAYS {
        let bench = Bench::start(way);
        let seen = Arc::clone(&bench.seen);
        let client = bench.client(|jobs, cx| async move {
            let begun = pin!(reaches(&cx, &seen.begun, 1));
            // `select` returns once the handler has begun, and the call is dropped.
            futures::future::select(jobs.hang(&()), begun).await;
            let late = jobs.hang(&()).deadline(Duration::from_millis(500)).await;
            assert!(late.is_err());
            // The client keeps the session open until both handlers are gone.
            reaches(&cx, &seen.dropped, 2).await;
        });
        bench.finish(client);
        assert_eq!(bench.seen.begun.load(Ordering::SeqCst), 2);
        // Only the dispatcher is left.
        assert_eq!(bench.queue.tasks(), 1);
    }
}

#[test]
fn a_request_that_is_given_up_before_its_handler_begins_never_runs() {
    let bench = Bench::start(WAYS[0]);
    bench.queue.run();
    let before = bench.queue.wakes();
    let client = bench.client_on(|jobs, cx, session| async move {
        let late = jobs.hang(&()).deadline(Duration::from_millis(300)).await;
        // The endpoint itself answers this, after it has seen that the call above is cancelled.
        let unknown = cx.call(session, ReqType(9999), cx.copy(b"").unwrap()).await;
        assert!(unknown.is_err());
        late
    });
    until(|| bench.queue.wakes() > before && client.is_finished());
    assert!(client.join().unwrap().is_err());
    let client = bench.client(|jobs, _| async move { jobs.double(&3).await });
    assert_eq!(bench.finish(client), Ok(6));
    // Only the handler of `double` has begun.
    assert_eq!(bench.seen.begun.load(Ordering::SeqCst), 1);
    assert_eq!(bench.queue.tasks(), 1);
}

#[test]
fn a_spawned_handler_that_is_given_up_never_begins() {
    let bench = Bench::start(WAYS[0]);
    bench.queue.run();
    let client = bench.client(|jobs, _| async move {
        let call = jobs.hang(&()).deadline(Duration::from_millis(100));
        call.await
    });
    // The dispatcher spawns the handler, which this turn does not poll.
    until(|| bench.queue.turn());
    assert_eq!(bench.queue.tasks(), 2);
    until(|| client.is_finished());
    bench.run_until(|| bench.queue.tasks() == 1);
    assert_eq!(bench.seen.begun.load(Ordering::SeqCst), 0);
}

#[test]
fn requests_end_when_the_executor_is_shut_down() {
    for way in WAYS {
        let bench = Bench::start(way);
        let begun = bench.client(|jobs, _| async move { jobs.hang(&()).await });
        bench.run_until(|| bench.seen.begun.load(Ordering::SeqCst) == 1);
        let wakes = bench.queue.wakes();
        let waiting = bench.client(|jobs, _| async move { jobs.double(&1).await });
        until(|| bench.queue.wakes() > wakes);
        bench.queue.shut_down();
        let begun = begun.join().unwrap();
        assert_eq!(code(begun), ErrorCode::HANDLER_FAILED);
        let waiting = waiting.join().unwrap();
        assert_eq!(waiting.as_ref().unwrap_err().ran(), dunlin::Ran::No);
        assert_eq!(code(waiting), ErrorCode::SHUTTING_DOWN);
        let later = bench.client(|jobs, _| async move { jobs.double(&1).await });
        assert_eq!(code(later.join().unwrap()), ErrorCode::SHUTTING_DOWN);
        assert_eq!(bench.seen.dropped.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_handler_that_the_executor_drops_at_once_has_not_run() {
    let bench = Bench::start(WAYS[0]);
    bench.queue.refuse();
    let client = bench.client(|jobs, _| async move { jobs.double(&1).await });
    let refused = bench.finish(client);
    assert_eq!(refused.as_ref().unwrap_err().ran(), dunlin::Ran::No);
    assert_eq!(code(refused), ErrorCode::SHUTTING_DOWN);
}

#[test]
fn an_executor_that_panics_loses_only_that_request() {
    let bench = Bench::start(WAYS[0]);
    let hangs = bench.client(|jobs, _| async move { jobs.hang(&()).await });
    bench.run_until(|| bench.seen.begun.load(Ordering::SeqCst) == 1);
    bench.queue.panic_once();
    let client = bench.client(|jobs, _| async move { jobs.double(&1).await });
    assert_eq!(code(bench.finish(client)), ErrorCode::SHUTTING_DOWN);
    let client = bench.client(|jobs, _| async move { jobs.double(&2).await });
    assert_eq!(bench.finish(client), Ok(4));
    assert!(!hangs.is_finished());
    bench.queue.shut_down();
    assert_eq!(code(hangs.join().unwrap()), ErrorCode::HANDLER_FAILED);
}

#[test]
fn a_drain_waits_for_handlers() {
    let bench = Bench::start(WAYS[0]);
    bench.queue.run();
    let before = bench.queue.wakes();
    let client = bench.client(|jobs, _| async move { jobs.double(&5).await });
    until(|| bench.queue.wakes() > before);
    let Bench { server, queue, .. } = bench;
    let drain = std::thread::spawn(|| server.drain());
    // The handler has not begun, and only this thread can run it. So if the drain waits for the
    // handler, it has not ended after any pause. If it did not wait, it would end within this
    // pause, unless the machine is busy.
    std::thread::sleep(Duration::from_millis(100));
    assert!(!drain.is_finished());
    until(|| {
        queue.run();
        drain.is_finished()
    });
    assert_eq!(client.join().unwrap(), Ok(10));
    let drained = drain.join().unwrap();
    assert_eq!((drained.finished, drained.cut_off), (1, 0));
    // The dispatcher has ended with its endpoint.
    queue.run();
    assert_eq!(queue.tasks(), 0);
}

#[test]
fn the_end_of_a_server_drops_its_handlers() {
    let bench = Bench::start(WAYS[0]);
    let client = bench.client(|jobs, _| async move { jobs.hang(&()).await });
    bench.run_until(|| bench.seen.begun.load(Ordering::SeqCst) == 1);
    let Bench {
        server,
        queue,
        seen,
        ..
    } = bench;
    drop(server);
    queue.run();
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
    assert_eq!(queue.tasks(), 0);
    assert!(client.join().unwrap().is_err());
}
