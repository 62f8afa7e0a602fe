//! Servers that do not answer: the requests that they hold count, although their calls have ended.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::channel::State;
use dunlin::{Channel, ChannelError};
use futures::future::{join_all, select};

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, HOLD, WAYS, Way, block_on, until};

const SHORT: Duration = Duration::from_millis(30);

fn is_full(channel: &Channel) -> bool {
    matches!(block_on(channel.call(ECHO, b"")), Err(ChannelError::Full))
}

/// A server that holds two requests, of a channel with two places. Both calls have ended: by their
/// deadlines, or because they were dropped.
fn stuck(way: Way, is_dropped: bool) -> (Server, Channel) {
    let server = Server::start(way, "127.0.0.1:0", Role::Keeps);
    let channel = way.channel(server.address).queue(2).open().unwrap();
    block_on(channel.call(ECHO, b"")).unwrap();
    let calls = || (0..2).map(|_| channel.call(HOLD, b""));
    if is_dropped {
        let held = async { until(|| server.seen.held.load(Ordering::Relaxed) == 2) };
        block_on(select(join_all(calls()), Box::pin(held)));
    } else {
        let ends = block_on(join_all(calls().map(|call| call.deadline(SHORT))));
        assert!(ends.iter().all(Result::is_err));
    }
    assert_eq!(server.seen.held.load(Ordering::Relaxed), 2);
    (server, channel)
}

#[test]
fn a_call_that_was_given_up_keeps_its_place_until_the_server_answers() {
    for (way, is_dropped) in WAYS.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        let (server, channel) = stuck(way, is_dropped);
        until(|| server.seen.given_up.load(Ordering::Relaxed) == 2);
        assert!(is_full(&channel), "{way:?} {is_dropped}");
        server.seen.may_answer.store(true, Ordering::Relaxed);
        until(|| !is_full(&channel));
        let ends = block_on(join_all((0..2).map(|_| channel.call(ECHO, b""))));
        until(|| ends.iter().all(Result::is_ok));
    }
}

#[test]
fn the_end_of_its_session_frees_the_place_of_a_call_that_was_given_up() {
    for way in WAYS {
        let (server, channel) = stuck(way, false);
        assert!(is_full(&channel));
        drop(server);
        let short = || channel.call(ECHO, b"").deadline(SHORT);
        until(|| !matches!(block_on(short()), Err(ChannelError::Full)));
    }
}

#[test]
fn a_stuck_server_does_not_look_idle() {
    for way in WAYS {
        let roles = [Role::Keeps, Role::Answers];
        let [stuck, other] = roles.map(|role| Server::start(way, "127.0.0.1:0", role));
        let channel = way
            .channel(stuck.address)
            .address(other.address.to_string());
        let channel = channel.open().unwrap();
        let is_ready = |state: dunlin::ChannelState| {
            let mut addresses = state.addresses.iter();
            addresses.all(|address| address.state == State::Ready)
        };
        until(|| is_ready(channel.state()));
        // The calls run one after the other. Between two of them, only the stuck server has
        // requests.
        let mut late = 0;
        for _ in 0..60 {
            let end = block_on(channel.call(HOLD, b"").deadline(SHORT));
            late += usize::from(end.is_err());
        }
        assert_eq!(late, 1, "{way:?}");
        assert_eq!(stuck.seen.held.load(Ordering::Relaxed), 1);
    }
}
