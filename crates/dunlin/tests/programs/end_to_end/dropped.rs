//! If another thread drops a held request, the endpoint answers immediately, even if it is asleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dunlin::{Auto, DeferredRequest, ErrorCode, Nexus, Rpc, RpcError, Shm, Udp};

use crate::end_to_end::Named;
use crate::end_to_end::client::{Client, PATIENCE};
use crate::end_to_end::server::HOLD;

/// Longer than the server takes to fall asleep.
const ASLEEP: Duration = Duration::from_millis(20);
/// Probes of the client are so rare that none wakes the server during the test.
const NO_PROBES: Duration = Duration::from_secs(60);
const ROUNDS: usize = 9;

/// A server thread that passes every request on to another thread.
fn give_away<T: Named>(
    nexus: Nexus,
    held: Sender<DeferredRequest>,
    stop: Arc<AtomicBool>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let builder = nexus.endpoint_builder::<T>();
        let mut rpc: Rpc<T, Sender<DeferredRequest>> = builder.build(held).unwrap();
        rpc.on(HOLD, |held, request, cx| {
            let _ = held.send(request.defer(cx));
        });
        rpc.run_until(|_| stop.load(Ordering::Relaxed));
    })
}

/// Starts a thread that waits until the server sleeps, drops the requests that it gets, and reports
/// the time of each drop.
fn drop_later(held: Receiver<DeferredRequest>, dropped: Sender<Instant>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for held in held {
            std::thread::sleep(ASLEEP);
            let _ = dropped.send(Instant::now());
            drop(held);
        }
    })
}

fn dropped_elsewhere<T: Named>() -> Vec<Duration> {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let address = nexus.address();
    let (give, held) = channel();
    let (tell, dropped) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let server = give_away::<T>(nexus, give, Arc::clone(&stop));
    let dropper = drop_later(held, tell);
    let mut client = Client::<T>::with(|builder| {
        builder.config(|config| {
            config.rto_floor = NO_PROBES.into();
            config.rto_initial = NO_PROBES.into();
            config.response_hold = (3 * NO_PROBES).into();
        })
    });
    let session = client.connect(address);
    let mut waits: Vec<_> = (0..ROUNDS)
        .map(|_| {
            client.call(session, HOLD, b"", 0);
            let done = client.finish(1, PATIENCE).remove(0);
            let failed = RpcError::rejected(ErrorCode::HANDLER_FAILED, true);
            assert_eq!(done.result, Err(failed));
            dropped.recv().unwrap().elapsed()
        })
        .collect();
    waits.sort();
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap();
    dropper.join().unwrap();
    println!("{}: {waits:?}", T::NAME);
    waits
}

#[test]
fn a_held_request_that_another_thread_drops_wakes_the_endpoint() {
    for waits in [
        dropped_elsewhere::<Shm>(),
        dropped_elsewhere::<Udp>(),
        dropped_elsewhere::<Auto>(),
    ] {
        // The machine may be busy now and then, but not most of the time.
        assert!(waits[ROUNDS / 2] < Duration::from_millis(5), "{waits:?}");
    }
}
