//! Servers that start, and servers that refuse to start.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dunlin::service::Failure;
use dunlin::{Auto, ChannelError, Rpc, ServeError, Server, Settings};
use dunlin_testkit::address::free_port;

use crate::server::service::{
    BasedClient, BasedPoll, BasedServer, OtherPoll, OtherServer, Polled, WorkClient, WorkPoll,
    WorkServer, Worker,
};
use crate::server::{WAYS, Way, block_on};

const ANY: &str = "127.0.0.1:0";

#[test]
fn services_of_futures_and_of_the_poll_api_are_served() {
    for way in WAYS {
        let futures = way.server().service(Worker::server(&Arc::default()));
        let polls = way.server().poll(Polled, WorkPoll::register);
        for server in [futures, polls] {
            let running = server.start(ANY).unwrap();
            let work = WorkClient::over(way.open(running.address()));
            assert_eq!(block_on(work.run(&(7, 0))).unwrap(), 7);
            drop(running);
            let gone = block_on(
                work.run(&(8, 0))
                    .deadline(std::time::Duration::from_millis(50)),
            );
            assert!(matches!(gone, Err(Failure::Call(_))));
        }
    }
}

#[test]
fn a_port_in_use_is_an_error_unless_any_port_will_do() {
    let server = || Server::builder().service(Worker::server(&Arc::default()));
    let first = server().start(ANY).unwrap();
    let taken = server().start(first.address()).unwrap_err();
    assert!(matches!(taken, ServeError::Nexus(_)), "{taken}");
    assert!(taken.to_string().contains("choose another port"), "{taken}");
    let second = server().any_port(true).start(first.address()).unwrap();
    assert_ne!(first.address(), second.address());
}

/// Until the announcement, a client that asks for any endpoint could get the server's own one,
/// which runs no service.
#[test]
fn a_server_announces_its_services_before_it_makes_its_own_endpoint() {
    for way in WAYS {
        let (at, announced) = (free_port(), Arc::new(AtomicUsize::new(0)));
        let (address, seen, made) = (at.clone(), Arc::clone(&announced), AtomicUsize::new(0));
        let server = way.server().endpoint(move |builder| {
            // The first endpoint serves, and the second one is the server's own.
            if made.fetch_add(1, Ordering::Relaxed) == 1 {
                let nexus = way.nexus().bind(ANY).unwrap();
                let mut rpc: Rpc<Auto, usize> = nexus.endpoint(0).unwrap();
                rpc.on_serving(|seen, said, _| *seen = said.serving.endpoints.into());
                rpc.connect_blocking(address.as_str()).unwrap();
                seen.store(*rpc.app(), Ordering::Relaxed);
            }
            builder
        });
        let server = server.service(Worker::server(&Arc::default()));
        drop(server.start(at.as_str()).unwrap());
        assert_eq!(announced.load(Ordering::Relaxed), 1, "{way:?}");
    }
}

#[test]
fn a_server_that_cannot_serve_does_not_start() {
    let worker = || Worker::server(&Arc::default());
    let none = Server::builder().start(ANY);
    assert!(matches!(none, Err(ServeError::NoService)));
    let mixed = Server::builder().service(worker());
    let mixed = mixed.poll(Polled, WorkPoll::register).start(ANY);
    assert!(matches!(mixed, Err(ServeError::Mixed)));
    let panics = Server::builder().service(|_| -> WorkServer<Worker> { panic!("a planted panic") });
    assert!(matches!(panics.start(ANY), Err(ServeError::Panicked)));
    let late = Server::builder().threads(2).service(|thread| {
        assert_eq!(thread.index(), 0, "a planted panic");
        Worker::server(&Arc::default())(thread)
    });
    assert!(matches!(late.start(ANY), Err(ServeError::Panicked)));
}

#[test]
fn equal_numbers_of_two_services_are_an_error() {
    let futures = Server::builder()
        .service(Worker::server(&Arc::default()))
        .service(|_| OtherServer(()));
    let polls = Server::builder().poll(Polled, |rpc| {
        OtherPoll::register(rpc);
        WorkPoll::register(rpc);
    });
    for server in [futures, polls] {
        let same = server.start(ANY).unwrap_err();
        assert!(matches!(same, ServeError::SameNumber(3)), "{same}");
    }
}

#[test]
fn services_with_bases_of_their_own_share_an_endpoint() {
    let way = Way::Shm;
    let futures = way.server().service(Worker::server(&Arc::default()));
    let futures = futures.service(|_| BasedServer(()));
    let polls = way.server().poll(Polled, |rpc| {
        WorkPoll::register(rpc);
        BasedPoll::register(rpc);
    });
    for server in [futures, polls] {
        let running = server.start(ANY).unwrap();
        let channel = way.open(running.address());
        let based = BasedClient::over(channel.clone());
        assert_eq!(block_on(based.twice(&21)).unwrap(), 42);
        assert_eq!(block_on(WorkClient::over(channel).run(&(7, 0))).unwrap(), 7);
    }
}

#[test]
fn settings_reach_servers_hubs_and_channels() {
    let text = "[nexus]\nlisten = '127.0.0.1:0'\n[server]\nthreads = 2\n\
                [channel]\nlisten = '127.0.0.1:0'\nqueue = 1\nthreads = 3\n";
    let settings = Settings::default().with_toml("a.toml", text).unwrap();
    let server = settings.server().service(Worker::server(&Arc::default()));
    let running = server.start(settings.listen()).unwrap();
    let hub = settings.hub().start().unwrap();
    assert!(hub.nexus().address().ip().is_loopback());
    let channel = hub.channel().address(running.address().to_string()).open();
    let work = WorkClient::over(channel.unwrap());
    assert_eq!(block_on(work.thread(&()).endpoint(1)).unwrap(), 1);
    // The first call has the only place of the queue until it ends.
    let second = block_on(async {
        let mut first = pin!(work.hang(&()).into_future());
        assert!(futures::poll!(first.as_mut()).is_pending());
        work.thread(&()).await
    });
    assert!(matches!(second, Err(Failure::Call(ChannelError::Full))));
}

#[test]
fn each_thread_has_an_endpoint_and_a_service_of_its_own() {
    for way in WAYS {
        let server = way.server().threads(3);
        let running = server.service(Worker::server(&Arc::default()));
        let running = running.start(ANY).unwrap();
        let work = WorkClient::over(way.open(running.address()));
        for index in [2, 0, 1] {
            assert_eq!(
                block_on(work.thread(&()).endpoint(index)).unwrap(),
                usize::from(index)
            );
        }
    }
}

/// The option bounds the endpoints that the channel chooses, not the endpoints that calls name.
#[test]
fn a_channel_shares_calls_among_as_many_endpoints_as_its_option_allows() {
    let server = Way::Shm.server().threads(6);
    let server = server.service(Worker::server(&Arc::default()));
    let server = server.start(ANY).unwrap();
    let open = |endpoints| {
        let channel = Way::Shm.channel().address(server.address().to_string());
        WorkClient::over(channel.endpoints_per_server(endpoints).open().unwrap())
    };
    let threads = |work: &WorkClient<_>| {
        let burst = (0..600).map(|_| work.thread(&()));
        let ends = block_on(futures::future::join_all(burst));
        ends.into_iter()
            .map(Result::unwrap)
            .collect::<BTreeSet<_>>()
    };
    let one = open(1);
    for _ in 0..20 {
        assert_eq!(threads(&one).into_iter().collect::<Vec<_>>(), [0]);
    }
    assert_eq!(block_on(one.thread(&()).endpoint(5)).unwrap(), 5);
    let (all, mut seen) = (open(6), BTreeSet::new());
    crate::server::until(|| {
        seen.extend(threads(&all));
        seen.len() == 6
    });
}

/// A channel takes the other endpoints of a server when its sessions with the first are full.
#[test]
fn a_channel_finds_all_threads() {
    let running = Way::Shm
        .server()
        .threads(3)
        .service(Worker::server(&Arc::default()));
    let running = running.start(ANY).unwrap();
    let work = WorkClient::over(Way::Shm.open(running.address()));
    let mut seen = [false; 3];
    crate::server::until(|| {
        let burst = (0..200).map(|_| work.thread(&()));
        for index in block_on(futures::future::join_all(burst)) {
            seen[index.unwrap()] = true;
        }
        seen == [true; 3]
    });
}
