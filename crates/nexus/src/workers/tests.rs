//! Jobs run once and return to their endpoint. Limits, and the end of the pool.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc;

use super::*;

/// A job that adds itself to a sum, perhaps after waiting for permission.
struct Sum {
    value: u64,
    into: Arc<AtomicU64>,
    leave: Option<mpsc::Receiver<()>>,
}

impl Run for Sum {
    fn run(&mut self) {
        if let Some(leave) = &self.leave {
            leave.recv().unwrap();
        }
        self.into.fetch_add(self.value, Ordering::Relaxed);
    }
}

fn pool(threads: usize, queue: usize) -> Pool<Sum> {
    Pool::new(WorkerOptions {
        threads,
        queue,
        ..WorkerOptions::default()
    })
    .unwrap()
}

fn handle(pool: &Pool<Sum>) -> PoolHandle<Sum> {
    pool.handle(Arc::new(Doorbell::new().unwrap())).unwrap()
}

#[test]
fn every_job_runs_once_and_comes_back_to_its_endpoint() {
    let pool = pool(2, 64);
    let mut endpoints = [handle(&pool), handle(&pool)];
    let sum = Arc::new(AtomicU64::new(0));
    let (mut next, mut back) = ([0_u64; 2], [0_u64; 2]);
    let total = 5_000;
    while back != [total; 2] {
        for (index, endpoint) in endpoints.iter_mut().enumerate() {
            while next[index] < total {
                // The value identifies the job's endpoint.
                let value = next[index] * 2 + u64::try_from(index).unwrap();
                let job = Sum {
                    value,
                    into: Arc::clone(&sum),
                    leave: None,
                };
                if endpoint.submit(job).is_err() {
                    break;
                }
                next[index] += 1;
            }
            while let Some(job) = endpoint.poll() {
                assert_eq!(job.value % 2, u64::try_from(index).unwrap());
                back[index] += 1;
            }
        }
        std::thread::yield_now();
    }
    assert_eq!(sum.load(Ordering::Relaxed), (0..total * 2).sum());
}

#[test]
fn an_endpoint_with_too_much_under_way_gets_its_job_back_and_others_do_not() {
    let pool = pool(1, 3);
    let (mut greedy, mut other) = (handle(&pool), handle(&pool));
    let sum = Arc::new(AtomicU64::new(0));
    let (go, leave) = mpsc::channel();
    let job = |leave| Sum {
        value: 1,
        into: Arc::clone(&sum),
        leave,
    };
    assert!(greedy.submit(job(Some(leave))).is_ok());
    assert!(greedy.submit(job(None)).is_ok());
    assert!(greedy.submit(job(None)).is_ok());
    assert!(greedy.submit(job(None)).is_err());
    assert!(other.submit(job(None)).is_ok());
    go.send(()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut back = 0;
    while back < 4 && Instant::now() < deadline {
        back += usize::from(greedy.poll().is_some()) + usize::from(other.poll().is_some());
    }
    assert_eq!(back, 4);
    assert!(greedy.submit(job(None)).is_ok(), "there is room again");
}

#[test]
fn a_finished_job_rings_the_doorbell_of_a_sleeper() {
    use std::os::fd::AsRawFd;

    let pool = pool(1, 4);
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let mut endpoint = pool.handle(Arc::clone(&doorbell)).unwrap();
    let epoll = crate::ffi::Epoll::new().unwrap();
    epoll
        .add(doorbell.as_raw_fd(), 0, crate::ffi::Interest::Read)
        .unwrap();
    let mut events = crate::ffi::Events::new();
    for round in 0..200 {
        let sum = Arc::new(AtomicU64::new(0));
        assert!(
            endpoint
                .submit(Sum {
                    value: 1,
                    into: sum,
                    leave: None
                })
                .is_ok()
        );
        let mut signalled = false;
        if doorbell.sleep() {
            epoll
                .wait(&mut events, Some(Duration::from_secs(10)))
                .unwrap();
            signalled = events.iter().count() > 0;
            assert!(signalled, "round {round}");
        }
        doorbell.wake(signalled);
        assert!(doorbell.take());
        assert!(endpoint.poll().is_some());
    }
}

#[test]
fn dropping_the_pool_ends_its_threads_and_drops_what_waits() {
    let pool = pool(2, 64);
    let mut endpoint = handle(&pool);
    let sum = Arc::new(AtomicU64::new(0));
    let (go, leave) = mpsc::channel();
    let slow = Sum {
        value: 1,
        into: Arc::clone(&sum),
        leave: Some(leave),
    };
    assert!(endpoint.submit(slow).is_ok());
    go.send(()).unwrap();
    for _ in 0..20 {
        assert!(
            endpoint
                .submit(Sum {
                    value: 1,
                    into: Arc::clone(&sum),
                    leave: None
                })
                .is_ok()
        );
    }
    drop(pool);
    assert!(
        endpoint
            .submit(Sum {
                value: 1,
                into: Arc::clone(&sum),
                leave: None
            })
            .is_err()
    );
    let ran = sum.load(Ordering::Relaxed);
    let mut back = 0;
    while endpoint.poll().is_some() {
        back += 1;
    }
    assert_eq!(
        back, ran,
        "each job that ran came back, and none is running"
    );
}

#[test]
fn a_pool_without_threads_has_no_handles() {
    assert!(
        pool(0, 4)
            .handle(Arc::new(Doorbell::new().unwrap()))
            .is_none()
    );
}
