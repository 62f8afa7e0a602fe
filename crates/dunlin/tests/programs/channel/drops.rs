//! Calls that are dropped at each stage, and dropped channels and hubs.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, HOLD, WAYS, Way, block_on, free_port, until};

/// Polls a call once, and drops it.
fn poll_and_drop(call: dunlin::Outgoing) {
    let mut call = pin!(call);
    block_on(poll_fn(|context| {
        assert!(call.as_mut().poll(context).is_pending());
        Poll::Ready(())
    }));
}

#[test]
fn a_call_is_dropped_at_each_stage() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Holds);
        let (seen, channel) = (
            &server.seen,
            way.channel(server.address).queue(8).open().unwrap(),
        );
        let held = || seen.held.load(Ordering::Relaxed);
        // Dropped before the first poll.
        drop(channel.call(HOLD, b""));
        block_on(channel.call(ECHO, b"")).unwrap();
        assert_eq!(held(), 0, "it was not sent");
        // Dropped while the server holds the request.
        for round in 1..=20 {
            let call = channel.call(HOLD, b"");
            let ran = held() + 1;
            let mut call = Box::pin(call);
            block_on(poll_fn(|context| {
                assert!(call.as_mut().poll(context).is_pending());
                Poll::Ready(())
            }));
            until(|| held() == ran);
            drop(call);
            until(|| seen.given_up.load(Ordering::Relaxed) == round);
        }
        // Dropped on its way to the endpoint's thread, or shortly after.
        for _ in 0..200 {
            until(|| {
                let mut call = pin!(channel.call(HOLD, b""));
                // The first poll ends the call if the server still holds as many requests as the
                // channel may have.
                block_on(poll_fn(|context| {
                    Poll::Ready(call.as_mut().poll(context).is_pending())
                }))
            });
        }
        // All places of the channel are free again, once the server has let go of all requests.
        let all_are_free = || {
            let calls = (0..8).map(|_| channel.call(ECHO, b"all"));
            let ends = block_on(futures::future::join_all(calls));
            ends.iter().all(Result::is_ok)
        };
        until(all_are_free);
        // Dropped after its end, which the task has not seen.
        for _ in 0..20 {
            let mut call = Box::pin(channel.call(ECHO, b"unseen"));
            let waker = std::task::Waker::noop();
            let poll = call
                .as_mut()
                .poll(&mut std::task::Context::from_waker(waker));
            // The poll may be ready, if the kernel stopped this thread in the middle of it.
            drop(poll);
            block_on(channel.call(ECHO, b"seen")).unwrap();
        }
        until(all_are_free);
        let calls: Vec<_> = (0..8).map(|_| channel.call(ECHO, b"all")).collect();
        for end in block_on(futures::future::join_all(calls)) {
            assert_eq!(end.unwrap().data(), b"all");
        }
    }
}

#[test]
fn calls_that_wait_for_a_server_are_dropped_without_a_trace() {
    let port = free_port();
    let channel = Way::Shm.open(&port);
    for _ in 0..50 {
        poll_and_drop(channel.call(HOLD, b""));
    }
    let server = Server::start(Way::Shm, &port, Role::Answers);
    block_on(channel.call(ECHO, b"")).unwrap();
    assert_eq!(server.seen.held.load(Ordering::Relaxed), 0);
}

#[test]
fn the_last_channel_and_its_last_call_end_the_sessions() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Holds);
        let sessions = || server.seen.sessions.load(Ordering::Relaxed);
        let channel = way.open(server.address);
        let mut watch = channel.watch();
        let hub = channel.hub().clone();
        let call = channel.clone().call(ECHO, b"goes on");
        block_on(channel.ready()).unwrap();
        until(|| sessions() == 1);
        drop(channel);
        assert_eq!(block_on(call).unwrap().data(), b"goes on");
        until(|| sessions() == 0);
        while block_on(watch.changed()).is_some() {}
        drop(hub);
    }
}

/// A task of a runtime drops everything, as the tasks of most programs do at their end.
#[test]
fn a_task_drops_its_channel_its_calls_and_its_hub() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Holds);
        let address = server.address;
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let task = runtime.spawn(async move {
            let channel = way.open(address);
            channel.call(ECHO, b"").await.unwrap();
            let mut held = Box::pin(channel.call(HOLD, b""));
            assert!(futures::poll!(&mut held).is_pending());
            let hub = channel.hub().clone();
            drop((channel, held));
            // Waits for the threads of the hub.
            let at = hub.nexus().address();
            drop(hub);
            at
        });
        let at = runtime.block_on(task).unwrap();
        // The nexus of the hub no longer listens, and the server's session has ended.
        until(|| std::net::TcpListener::bind(at).is_ok());
        until(|| server.seen.sessions.load(Ordering::Relaxed) == 0);
    }
}

#[test]
fn the_last_handle_ends_the_threads_of_a_hub() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Answers);
    let channel = Way::Shm.open(server.address);
    block_on(channel.ready()).unwrap();
    let at = channel.hub().nexus().address();
    drop(channel);
    // The hub's nexus no longer listens.
    until(|| std::net::TcpListener::bind(at).is_ok());
    until(|| server.seen.sessions.load(Ordering::Relaxed) == 0);
}
