//! Sessions whose window is less than one packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dunlin_core::{BytesPerSec, CongestionControl, Nanos, Sample, Tag};
use dunlin_testkit::pair::*;

/// A scheme with a window below one packet, and a rate of one packet in 10 µs. It counts losses.
#[derive(Debug)]
struct BelowOne(Arc<AtomicU32>);

impl CongestionControl for BelowOne {
    fn on_answer(&mut self, _: Sample) {}

    fn window(&self) -> Option<u32> {
        Some(0)
    }

    fn on_loss(&mut self, _: Nanos) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn on_timeout(&mut self, _: Nanos) {}

    fn rate(&self) -> Option<BytesPerSec> {
        Some(BytesPerSec(104_800_000))
    }
}

/// Otherwise, each of a thousand senders whose answers take milliseconds would have many packets in
/// a queue, and together they would fill it.
#[test]
fn below_a_window_of_one_packet_only_one_is_in_flight() {
    let mut pair = Pair::new();
    let (session, losses) = (pair.session, Arc::new(AtomicU32::new(0)));
    let scheme = Box::new(BelowOne(Arc::clone(&losses)));
    assert_eq!(pair.client.rpc.set_own_scheme(session, scheme), Ok(()));
    for tag in [1, 2] {
        let rpc = &mut pair.client.rpc;
        let (request, response) = (rpc.buf(20 * 1024).unwrap(), rpc.buf(20 * 1024).unwrap());
        let called = rpc.call(session, ECHO, request, response, Tag(tag));
        assert!(called.is_ok());
    }
    for round in 0..10 {
        // Answers come 100 µs late.
        for _ in 0..10 {
            pair.step_client();
            pair.clock.pass(Nanos::from_micros(10));
        }
        assert_eq!(pair.client.out.borrow().len(), 1, "in round {round}");
        deliver(&pair.client.out, &pair.server.inbox);
        pair.step_server();
        deliver(&pair.server.out, &pair.client.inbox);
    }
    pair.step_client();
    pair.clock.pass(Nanos::from_micros(20));
    pair.step_client();
    assert_eq!(pair.client.out.borrow().len(), 1);
    assert_eq!(losses.load(Ordering::Relaxed), 0);
    // The packet is lost. No later packet reveals that, so the probe counts as a loss.
    pair.client.out.borrow_mut().clear();
    pair.pass(Nanos::from_millis(20));
    assert_eq!(pair.done().len(), 2);
    assert_eq!(losses.load(Ordering::Relaxed), 1);
    pair.assert_clean();
}
