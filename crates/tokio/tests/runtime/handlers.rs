//! Handlers on a runtime: their threads, the calls that they make, and their ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::Ran;
use tokio::runtime::Builder;

use crate::service::{JobsClient, Seen};
use crate::{PATIENCE, WAYS, Way, block_on, runtime, until, worker};

#[test]
fn handlers_run_on_the_threads_of_the_runtime() {
    for way in WAYS {
        let runtime = runtime();
        let server = way.serve(1, &worker(&Arc::default()), runtime.handle());
        let jobs = JobsClient::over(way.open(&server));
        let thread = block_on(jobs.thread(&())).unwrap();
        assert!(thread.starts_with("tokio"), "{thread}");
    }
}

/// Handlers and clients share the only thread of the runtime.
#[test]
fn a_runtime_of_one_thread_suffices() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let server = Way::Shm.serve(2, &worker(&Arc::default()), runtime.handle());
    let jobs = JobsClient::over(Way::Shm.open(&server));
    runtime.block_on(async {
        let calls: Vec<_> = (0..64)
            .map(|number| tokio::spawn(jobs.run(&(number, 1))))
            .collect();
        for (number, call) in (0..64).zip(calls) {
            assert_eq!(call.await.unwrap().unwrap(), number);
        }
        let drained = dunlin_tokio::drain(server).await;
        assert_eq!(drained.cut_off, 0);
    });
}

#[test]
fn a_handler_calls_another_server() {
    for way in WAYS {
        let (runtime, seen) = (runtime(), Arc::<Seen>::default());
        let back = way.serve(1, &worker(&seen), runtime.handle());
        let front_worker = worker(&Arc::default());
        let _ = front_worker.other.set(JobsClient::over(way.open(&back)));
        let front = way.serve(1, &front_worker, runtime.handle());
        let jobs = JobsClient::over(way.open(&front));
        assert_eq!(block_on(jobs.pass_on(&Some(7))).unwrap(), 7);
        // The deadline reaches the second server, whose handler is dropped too.
        let late = block_on(jobs.pass_on(&None).deadline(Duration::from_secs(1)));
        assert!(late.is_err());
        until(|| seen.dropped.load(Ordering::SeqCst) == 1);
    }
}

#[test]
fn a_client_that_gives_up_drops_the_handlers_future() {
    for way in WAYS {
        let (runtime, seen) = (runtime(), Arc::<Seen>::default());
        let server = way.serve(1, &worker(&seen), runtime.handle());
        let jobs = JobsClient::over(way.open(&server));
        let call = runtime.spawn(jobs.hang(&()));
        until(|| seen.begun.load(Ordering::SeqCst) == 1);
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 0);
        call.abort();
        until(|| seen.dropped.load(Ordering::SeqCst) == 1);
    }
}

#[test]
fn a_runtime_is_shut_down_under_a_server() {
    for way in WAYS {
        let (handlers, seen) = (runtime(), Arc::<Seen>::default());
        let server = way.serve(1, &worker(&seen), handlers.handle());
        let jobs = JobsClient::over(way.open(&server));
        let clients = runtime();
        let begun: Vec<_> = (0..10).map(|_| clients.spawn(jobs.hang(&()))).collect();
        until(|| seen.begun.load(Ordering::SeqCst) == 10);
        handlers.shutdown_timeout(PATIENCE);
        clients.block_on(async {
            for call in begun {
                let error = call.await.unwrap().unwrap_err();
                assert!(error.to_string().contains("handler failed"), "{error}");
                assert_eq!(error.ran(), Ran::Unknown);
            }
            let later = jobs.run(&(1, 0)).deadline(Duration::from_millis(300));
            let error = later.await.unwrap_err();
            assert_eq!(error.ran(), Ran::No, "{error}");
        });
    }
}

/// A runtime is shut down while a handler blocks one of its threads; new requests still end.
#[test]
fn a_blocked_handler_of_a_dead_runtime_holds_up_no_request() {
    let (handlers, seen) = (runtime(), Arc::<Seen>::default());
    let server = Way::Shm.serve(1, &worker(&seen), handlers.handle());
    let jobs = JobsClient::over(Way::Shm.open(&server));
    let clients = runtime();
    let blocked = clients.spawn(jobs.block(&4000));
    until(|| seen.begun.load(Ordering::SeqCst) == 1);
    handlers.shutdown_background();
    // Meanwhile, the runtime's other thread drops the dispatcher. If the machine is so busy that
    // this takes longer, the dispatcher's drop ends the request, with the same error.
    std::thread::sleep(Duration::from_millis(200));
    let later = jobs.run(&(1, 0)).deadline(Duration::from_secs(2));
    assert_eq!(clients.block_on(later).unwrap_err().ran(), Ran::No);
    assert!(!blocked.is_finished());
    assert!(clients.block_on(blocked).unwrap().is_ok());
}
