//! Calls to a server whose handlers run on an executor.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::service::Failure;
use dunlin::{Clock, HealthState, Nanos, TscClock, ask_health};

use crate::offload::{Bench, PATIENCE, WAYS, until};

#[test]
fn values_errors_and_notifications_arrive() {
    for way in WAYS {
        let bench = Bench::start(way);
        let client = bench.client(|jobs, _| async move {
            jobs.note(&30).unwrap();
            jobs.note(&12).unwrap();
            let (value, error) = (jobs.double(&21).await, jobs.double(&0).await);
            (value, error, jobs.next(&7).await)
        });
        let (value, error, next) = bench.finish(client);
        assert_eq!((value, next), (Ok(42), Ok(8)));
        assert_eq!(error, Err(Failure::Method("nothing to double".to_owned())));
        bench.run_until(|| bench.seen.noted.load(Ordering::SeqCst) == 42);
    }
}

#[test]
fn messages_of_any_length_go_both_ways() {
    for way in WAYS {
        let bench = Bench::start(way);
        for length in [0, 1, 40, 1000, 5000, 300_000] {
            let client = bench.client(move |jobs, _| async move {
                let repeated = jobs.repeat(&(7, length)).room(length + 16).await;
                (repeated.unwrap(), jobs.length(&vec![7; length]).await)
            });
            let (repeated, counted) = bench.finish(client);
            assert_eq!(repeated, vec![7; length], "{way:?}");
            assert_eq!(counted, Ok(length), "{way:?}");
        }
    }
}

#[test]
fn a_handler_has_the_context_of_its_request() {
    let (bench, span) = (Bench::start(WAYS[0]), Duration::from_secs(2));
    // Waits until the clock shows more than `span`. If the deadline below were counted from the
    // zero of the clock, and not from the call, it would have passed by then.
    until(|| TscClock::new().now() > Nanos::from(span));
    let client = bench.client(move |jobs, _| async move {
        let plain = jobs.about(&()).await.unwrap();
        let rich = jobs.about(&()).deadline(span).meta("tenant", "blue");
        (plain, rich.unwrap().await.unwrap())
    });
    let (plain, (method, tenant, left)) = bench.finish(client);
    assert_eq!(plain, ("Jobs.about".to_owned(), String::new(), None));
    assert_eq!((&*method, &*tenant), ("Jobs.about", "blue"));
    assert!((1..=2000).contains(&left.unwrap()), "{left:?}");
}

#[test]
fn a_panic_ends_one_request() {
    let bench = Bench::start(WAYS[0]);
    let client = bench.client(|jobs, _| async move {
        let (fallen, fine) = (jobs.fall(&()), jobs.double(&4));
        futures::join!(fallen, fine)
    });
    let (fallen, fine) = bench.finish(client);
    assert_eq!(
        crate::offload::ends::code(fallen),
        dunlin::ErrorCode::HANDLER_FAILED
    );
    assert_eq!(fine, Ok(8));
}

#[test]
fn a_service_on_an_executor_reports_its_health_under_its_name() {
    let bench = Bench::start(WAYS[0]);
    let nexus = bench.way.nexus().bind("127.0.0.1:0").unwrap();
    let from = nexus.endpoint_builder::<dunlin::Auto>();
    let asked = ask_health(from, bench.server.address(), "Jobs", PATIENCE);
    assert_eq!(asked.unwrap(), HealthState::Serving);
}
