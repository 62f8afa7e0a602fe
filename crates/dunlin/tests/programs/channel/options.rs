//! Options of a channel that decide which server gets a call, and how often: keys, turns, hedges
//! and the number of attempts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::channel::{Pick, Retry, State};
use dunlin::service::Failure;
use dunlin::{Channel, ChannelBuilder, ChannelError};
use futures::future::join_all;

use crate::channel::typed::{HOLDS, Server, StoreClient};
use crate::channel::{PATIENCE, WAYS, Way, block_on, own_host, until};

const SHORT: Duration = Duration::from_millis(50);

/// A channel to these servers, with an option, once all are ready.
fn open(
    way: Way,
    servers: &[Server],
    option: impl FnOnce(ChannelBuilder) -> ChannelBuilder,
) -> Channel {
    let (first, others) = servers.split_first().unwrap();
    let channel = others
        .iter()
        .fold(way.channel(&first.address), |channel, server| {
            channel.address(&server.address)
        });
    let channel = option(channel).open().unwrap();
    until(|| ready(&channel) == servers.len());
    channel
}

/// The number of servers that are ready.
fn ready(channel: &Channel) -> usize {
    let addresses = channel.state().addresses;
    let ready = addresses.iter().filter(|it| it.state == State::Ready);
    ready.count()
}

#[test]
fn a_key_has_one_server_until_that_server_leaves() {
    for way in WAYS {
        let start = |number| Server::start(way, "127.0.0.1:0", number);
        let mut servers: Vec<_> = (1..=3).map(start).collect();
        let channel = open(way, &servers, |channel| channel.pick(Pick::Hash));
        let store = StoreClient::over(channel.clone());
        let through = StoreClient::over(channel.through(channel.clone()));
        let of_keys = || -> Vec<u32> {
            let of = |key: u32| block_on(store.read(&()).hash(&key)).unwrap();
            (0..40).map(of).collect()
        };
        let before = of_keys();
        assert!((1..=3).all(|server| before.contains(&server)), "{before:?}");
        assert_eq!(of_keys(), before);
        let of = |key: u32| block_on(through.read(&()).hash(&key)).unwrap();
        assert_eq!((0..40).map(of).collect::<Vec<_>>(), before);
        drop(servers.pop());
        until(|| ready(&channel) == 2);
        for (before, after) in before.into_iter().zip(of_keys()) {
            match before {
                3 => assert!(after < 3),
                other => assert_eq!(after, other, "a key moved that need not"),
            }
        }
    }
}

#[test]
fn only_a_call_that_may_run_twice_is_hedged() {
    for way in WAYS {
        let servers = [HOLDS, 2].map(|number| Server::start(way, "127.0.0.1:0", number));
        let channel = open(way, &servers, |channel| {
            channel.pick(Pick::RoundRobin).hedge(SHORT)
        });
        let store = StoreClient::over(channel);
        let reads = (0..4).map(|_| store.read(&()).deadline(PATIENCE));
        for read in block_on(join_all(reads)) {
            assert_eq!(read.unwrap(), 2);
        }
        assert!(servers[0].seen.held.load(Ordering::Relaxed) > 0);
        // Of two calls in turn, one is at the server that never answers.
        let takes = (0..2).map(|_| store.take(&()).deadline(Duration::from_secs(2)));
        let (taken, failed): (Vec<_>, Vec<_>) = block_on(join_all(takes))
            .into_iter()
            .partition(Result::is_ok);
        assert_eq!((taken.len(), failed.len()), (1, 1));
        let failed = failed.into_iter().next().unwrap().unwrap_err();
        assert!(failed.is_uncertain(), "{failed}");
    }
}

#[test]
fn a_channel_makes_no_more_attempts_than_it_may() {
    let once = Retry {
        attempts: 1,
        ..Retry::default()
    };
    for way in WAYS {
        let server = Server::start(way, &own_host(), HOLDS);
        let address = server.address.clone();
        let channel = way.channel(&address).retry(once).open().unwrap();
        let store = StoreClient::over(channel);
        let call = std::thread::spawn(move || block_on(store.read(&())));
        until(|| server.seen.held.load(Ordering::Relaxed) == 1);
        drop(server);
        let second = Server::start(way, &address, 2);
        let failure = call.join().unwrap().unwrap_err();
        assert!(matches!(failure, Failure::Call(ChannelError::Call { .. })));
        assert!(failure.is_uncertain(), "{failure}");
        assert_eq!(second.seen.held.load(Ordering::Relaxed), 0);
    }
}
