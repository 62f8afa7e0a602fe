//! An endpoint without traffic.

use std::time::{Duration, Instant};

use dunlin::{Nexus, Rpc, Shm};

#[test]
fn running_for_a_while_takes_no_longer_although_the_endpoint_sleeps() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    let span = Duration::from_millis(2);
    let mut took: Vec<_> = (0..9)
        .map(|_| {
            let begin = Instant::now();
            rpc.run_for(span);
            begin.elapsed()
        })
        .collect();
    took.sort();
    assert!(took[0] >= span, "{took:?}");
    // The machine may be busy now and then, but not most of the time.
    assert!(took[4] < 5 * span, "{took:?}");
}
