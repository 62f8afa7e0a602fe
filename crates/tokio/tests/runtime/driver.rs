//! An endpoint among the tasks of a thread.

use std::time::{Duration, Instant};

use dunlin::{Auto, Caller, Local, ReqType, Session, Tasks};
use tokio::task::LocalSet;

use crate::{WAYS, Way, block_on};

const ECHO: ReqType = ReqType(1);

fn local(way: Way) -> (Local<Auto>, Session) {
    let nexus = way.nexus().bind("127.0.0.1:0").unwrap();
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    local.serve(ECHO, |request, cx: Caller| async move {
        cx.sleep(Duration::from_millis(1)).await;
        let echo = request.data().to_owned();
        request.reply(echo)
    });
    let session = local.connect(nexus.address()).unwrap();
    (local, session)
}

#[test]
fn tasks_of_a_thread_share_an_endpoint() {
    for way in WAYS {
        let (local, session) = local(way);
        let cx = local.caller();
        let tasks = LocalSet::new();
        let driver = tasks.spawn_local(dunlin_tokio::drive(local));
        block_on(tasks.run_until(async {
            let calls: Vec<_> = (0..16_u8)
                .map(|number| {
                    let cx = cx.clone();
                    tokio::task::spawn_local(async move {
                        let request = cx.copy(&[number]).unwrap();
                        let reply = cx.call(session, ECHO, request).await.unwrap();
                        assert_eq!(reply.data(), [number]);
                    })
                })
                .collect();
            for call in calls {
                call.await.unwrap();
            }
        }));
        driver.abort();
    }
}

/// An idle driver uses little processor time, and a call of another task wakes it.
#[test]
fn an_idle_driver_sleeps_and_wakes() {
    let (local, session) = local(Way::Shm);
    let cx = local.caller();
    let tasks = LocalSet::new();
    tasks.spawn_local(dunlin_tokio::drive(local));
    block_on(tasks.run_until(async {
        let (begin, used) = (Instant::now(), processor_time());
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (passed, used) = (begin.elapsed(), processor_time() - used);
        assert!(used < passed / 4, "{used:?} of {passed:?}");
        let request = cx.copy(b"awake").unwrap();
        let reply = cx.call(session, ECHO, request).await.unwrap();
        assert_eq!(reply.data(), b"awake");
    }));
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = stat.split(' ').next().unwrap();
    Duration::from_nanos(nanos.parse().unwrap())
}
