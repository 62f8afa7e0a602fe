//! Bursts of requests, and more requests than the executor may have.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::ErrorCode;

use crate::offload::ends::code;
use crate::offload::{Bench, WAYS, until};

#[test]
fn a_burst_wakes_the_executor_once() {
    let bench = Bench::start(WAYS[0]);
    bench.queue.run();
    let before = bench.queue.wakes();
    let client = bench.client(|jobs, _| async move {
        let numbers: Vec<u64> = (1..=8).collect();
        let calls = numbers.iter().map(|number| jobs.double(number));
        futures::future::join_all(calls).await
    });
    until(|| bench.queue.wakes() > before);
    // Meanwhile, the other requests of the burst arrive. If the machine is so busy that some come
    // later, the check sees fewer of them, but it does not fail.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(bench.queue.wakes(), before + 1);
    bench.run_until(|| bench.seen.begun.load(Ordering::SeqCst) == 8);
    let ended = bench.finish(client);
    assert!(
        ended
            .iter()
            .zip(1..)
            .all(|(end, number)| *end == Ok(2 * number))
    );
}

#[test]
fn a_request_above_the_limit_is_refused_before_it_runs() {
    let bench = Bench::with_limit(WAYS[0], 2);
    let client = bench.client(|jobs, _| async move {
        let [one, two, three] = [(); 3].map(|()| jobs.hang(&()).deadline(crate::offload::PATIENCE));
        let refused = futures::future::select_all([one, two, three]).await.0;
        // Dropping the two others makes room.
        refused
    });
    let refused = bench.finish(client);
    assert_eq!(refused.as_ref().unwrap_err().ran(), dunlin::Ran::No);
    assert_eq!(code(refused), ErrorCode::OVERLOADED);
    bench.run_until(|| bench.queue.tasks() == 1);
    let client = bench.client(|jobs, _| async move { jobs.double(&1).await });
    assert_eq!(bench.finish(client), Ok(2));
}
