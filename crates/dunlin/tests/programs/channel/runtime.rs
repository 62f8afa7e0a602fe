//! Calls as tasks of tokio.

use std::sync::atomic::Ordering;

use crate::channel::ECHO;
use crate::channel::server::{Role, Server};
use crate::channel::{WAYS, Way, until};

#[test]
fn tokio_spawns_calls() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Answers);
        let channel = way.open(server.address);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let calls: Vec<_> = (0..64_u64)
                .map(|number| tokio::spawn(channel.call(ECHO, &number.to_le_bytes())))
                .collect();
            for (number, call) in (0..64_u64).zip(calls) {
                let answer = call.await.unwrap().unwrap();
                assert_eq!(answer.data(), number.to_le_bytes());
            }
        });
    }
}

#[test]
fn a_runtime_is_shut_down_under_a_channel() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Holds);
    let channel = Way::Shm.open(server.address);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let held = runtime.spawn(channel.call(crate::channel::HOLD, b""));
    runtime.block_on(async {
        channel.call(ECHO, b"").await.unwrap();
        tokio::task::yield_now().await;
    });
    until(|| server.seen.held.load(Ordering::Relaxed) == 1);
    drop(runtime);
    until(|| server.seen.given_up.load(Ordering::Relaxed) == 1);
    assert!(held.is_finished());
    assert_eq!(
        crate::channel::block_on(channel.call(ECHO, b"on"))
            .unwrap()
            .data(),
        b"on"
    );
}

/// No test calls this. It compiles only if a call and its result may move to another thread.
#[expect(dead_code, reason = "it proves something when it is compiled")]
fn calls_are_send(channel: dunlin::Channel) {
    fn crosses<T: Send + 'static>(_: T) {}
    fn is_shared<T: Send + Sync + 'static>(_: &T) {}
    is_shared(&channel);
    crosses(async move { channel.call(ECHO, b"").await });
}
