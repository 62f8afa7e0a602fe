//! A full channel, patience, deadlines, and addresses without a server.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dunlin::{AsyncError, Channel, ChannelError, Ran, RpcError};
use futures::future::{join, join_all};

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, HOLD, WAYS, Way, block_on, until};

/// An address at which no server listens.
const NOWHERE: &str = "127.0.0.1:1";

/// The patience of a channel that sets none.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn a_full_channel_refuses_calls_and_later_takes_them_again() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Holds);
    let channel = Way::Shm.channel(server.address).queue(3).open().unwrap();
    let short = |_| channel.call(HOLD, b"").deadline(Duration::from_millis(100));
    let ends = block_on(join_all((0..5).map(short)));
    // The server lets go of requests whose deadline has passed.
    let full = |end: &&Result<_, ChannelError>| matches!(end, Err(ChannelError::Full));
    assert_eq!(ends.iter().filter(full).count(), 2);
    assert!(ends.iter().filter(full).all(|end| match end {
        Err(error) => error.ran() == Ran::No,
        Ok(_) => false,
    }));
    assert_eq!(channel.counters().full, 2);
    until(|| server.seen.given_up.load(Ordering::Relaxed) == 3);
    until(|| {
        block_on(join_all((0..3).map(|_| channel.call(ECHO, b""))))
            .iter()
            .all(Result::is_ok)
    });
    // A call takes a place when it is sent, so calls that are only created take none.
    let made = [0; 3].map(|_| channel.call(HOLD, b""));
    let answer = block_on(channel.call(ECHO, b"before them")).unwrap();
    assert_eq!(answer.data(), b"before them");
    drop(made);
}

#[test]
fn a_permit_keeps_room_and_waits_for_it() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Holds);
    let channel = Way::Shm.channel(server.address).queue(1).open().unwrap();
    let permit = block_on(channel.permit());
    let end = block_on(channel.call(ECHO, b"one too many"));
    assert!(matches!(end, Err(ChannelError::Full)));
    // The next permit is granted when the call with the first permit has ended.
    let first = channel.call(ECHO, b"first").permit(permit);
    let (first, second) = block_on(join(first, async {
        let permit = channel.permit().await;
        channel.call(ECHO, b"second").permit(permit).await
    }));
    assert_eq!(first.unwrap().data(), b"first");
    assert_eq!(second.unwrap().data(), b"second");
    // A permit works only at the channel that issued it.
    let other = Way::Shm.open(NOWHERE);
    let permit = block_on(channel.permit());
    let call = channel.call(ECHO, b"").permit(block_on(other.permit()));
    assert!(matches!(block_on(call), Err(ChannelError::Full)));
    drop(permit);
    assert!(block_on(channel.call(ECHO, b"")).is_ok());
}

#[test]
fn a_call_waits_as_long_as_the_channel_is_patient() {
    for way in WAYS {
        // An attempt to connect takes up to a second; only then is the reason for its failure
        // known.
        let patience = Duration::from_secs(3);
        let channel = way.channel(NOWHERE).patience(patience).open().unwrap();
        let begin = Instant::now();
        let (call, ready) = block_on(join(channel.call(ECHO, b""), channel.ready()));
        let error = call.unwrap_err();
        assert!(begin.elapsed() >= patience);
        assert!(matches!(error, ChannelError::NoServer(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(NOWHERE) && text.contains("could be reached"),
            "{text}"
        );
        let error = ready.unwrap_err();
        assert!(matches!(error, ChannelError::NoServer(_)), "{error}");
    }
}

#[test]
fn the_error_contains_a_name_that_has_no_address() {
    const NAME: &str = "nowhere.invalid:1";
    let patience = Duration::from_millis(500);
    let channel = Way::Shm.channel(NAME).patience(patience).open().unwrap();
    let error = block_on(channel.call(ECHO, b"")).unwrap_err();
    assert!(matches!(error, ChannelError::NoServer(_)), "{error}");
    assert!(error.to_string().contains(NAME), "{error}");
    assert_eq!(channel.state().addresses[0].address, NAME);
}

#[test]
fn without_patience_a_call_fails_at_once() {
    let channel = Way::Shm.channel(NOWHERE).patience(Duration::ZERO);
    let channel = channel.open().unwrap();
    let begin = Instant::now();
    let error = block_on(channel.call(ECHO, b"")).unwrap_err();
    assert!(matches!(error, ChannelError::NoServer(_)), "{error}");
    assert!(begin.elapsed() < DEFAULT_PATIENCE / 2);
}

fn assert_late(end: Result<dunlin::Answer, ChannelError>, ran: Ran) {
    let error = end.map(|_| ()).unwrap_err();
    let late = AsyncError::Rpc(RpcError::DeadlinePassed(ran));
    assert!(
        matches!(error, ChannelError::Call { error, ran: it } if error == late && it == ran),
        "{error}"
    );
}

#[test]
fn a_deadline_ends_a_call_wherever_it_is() {
    let span = Duration::from_millis(100);
    let channel = Way::Shm.channel(NOWHERE).deadline(span).open().unwrap();
    assert_late(block_on(channel.call(ECHO, b"")), Ran::No);
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Holds);
        let channel = way.open(server.address);
        // A call that waits for the session until its deadline has not run.
        block_on(channel.ready()).unwrap();
        let span = 5 * span;
        let begin = Instant::now();
        assert_late(
            block_on(channel.call(HOLD, b"").deadline(span)),
            Ran::Unknown,
        );
        assert!(begin.elapsed() >= span);
    }
}

#[test]
fn a_text_that_is_not_an_address_is_refused() {
    for wrong in ["", "nowhere", "host:port", "tcp://host:1"] {
        let error = Channel::builder().address(wrong).open().unwrap_err();
        assert!(
            matches!(&error, ChannelError::Address(it) if it == wrong),
            "{error}"
        );
    }
    let error = Channel::builder().open().unwrap_err();
    assert!(matches!(error, ChannelError::NoAddress), "{error}");
}

#[test]
fn an_endpoint_that_no_server_has_is_refused() {
    let channel = Way::Shm.open(NOWHERE);
    let end = block_on(channel.call(ECHO, b"").endpoint(u16::MAX));
    assert!(matches!(end, Err(ChannelError::Endpoint)), "{end:?}");
}
