//! Many calls at once, some of which are dropped, each time at a different moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::service::{JobsClient, Seen};
use crate::{WAYS, runtime, until, worker};

const TASKS: u64 = 8;
const CALLS: u64 = 300;

#[test]
fn each_call_has_its_own_value() {
    for way in WAYS {
        let (handlers, clients) = (runtime(), runtime());
        let server = way.serve(2, &worker(&Arc::default()), handlers.handle());
        let jobs = JobsClient::over(way.open(&server));
        clients.block_on(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let jobs = jobs.clone();
                    tokio::spawn(async move {
                        for call in 0..CALLS {
                            let number = task * CALLS + call;
                            assert_eq!(jobs.run(&(number, 0)).await.unwrap(), number);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn dropped_calls_disturb_no_other_call() {
    for way in WAYS {
        let (handlers, clients) = (runtime(), runtime());
        let seen = Arc::<Seen>::default();
        let server = way.serve(1, &worker(&seen), handlers.handle());
        let jobs = JobsClient::over(way.open(&server));
        clients.block_on(async {
            for round in 0..100 {
                let hangs: Vec<_> = (0..8).map(|_| tokio::spawn(jobs.hang(&()))).collect();
                let runs = (0..8).map(|number| tokio::spawn(jobs.run(&(number, number % 2))));
                let runs: Vec<_> = runs.collect();
                // The drops come at a different moment in each round.
                tokio::time::sleep(Duration::from_micros(20 * round)).await;
                hangs.iter().for_each(tokio::task::JoinHandle::abort);
                for (number, run) in (0..8).zip(runs) {
                    assert_eq!(run.await.unwrap().unwrap(), number);
                }
            }
        });
        // In the end, each handler that hangs has been dropped.
        until(|| {
            let [begun, dropped] = [&seen.begun, &seen.dropped].map(|it| it.load(Ordering::SeqCst));
            begun == dropped
        });
        let drained = clients.block_on(dunlin_tokio::drain(server));
        assert_eq!(drained.cut_off, 0);
    }
}
