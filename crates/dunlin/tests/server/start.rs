//! Servers that start, and those that do not.

use std::sync::Arc;

use dunlin::service::Failure;
use dunlin::{ServeError, Server};

use crate::service::{OtherPoll, OtherServer, Polled, WorkClient, WorkPoll, WorkServer, Worker};
use crate::{WAYS, Way, block_on};

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
fn each_thread_has_an_endpoint_and_a_service_of_its_own() {
    for way in WAYS {
        let server = way.server().threads(3);
        let running = server.service(Worker::server(&Arc::default()));
        let running = running.start(ANY).unwrap();
        let work = WorkClient::over(way.open(running.address()));
        for index in [2, 0, 1] {
            assert_eq!(
                block_on(work.thread(&()).endpoint(index)).unwrap(),
                index.into()
            );
        }
    }
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
    crate::until(|| {
        let burst = (0..200).map(|_| work.thread(&()));
        for index in block_on(futures::future::join_all(burst)) {
            seen[index.unwrap()] = true;
        }
        seen == [true; 3]
    });
}
