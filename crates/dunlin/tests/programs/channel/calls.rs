//! Calls of several threads, and the state of a channel that its program sees.

use dunlin::channel::State;
use dunlin::{Channel, ReqType};

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, WAYS, Way, block_on, own_host};

#[test]
fn threads_call_over_one_channel() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Answers);
        let channel = way.open(server.address);
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let channel = channel.clone();
                scope.spawn(move || call_many(&channel, thread));
            }
        });
    }
}

/// Makes single calls, and then several at a time.
fn call_many(channel: &Channel, thread: u64) {
    for number in 0..200 {
        let body = (thread << 32 | number).to_le_bytes();
        let answer = block_on(channel.call(ECHO, &body)).unwrap();
        assert_eq!(answer.data(), body);
    }
    let bodies: Vec<_> = (0..200_u64)
        .map(|it| (thread << 32 | it).to_be_bytes())
        .collect();
    let calls = bodies.iter().map(|body| channel.call(ECHO, body));
    let answers = block_on(futures::future::join_all(calls));
    for (answer, body) in answers.into_iter().zip(&bodies) {
        assert_eq!(answer.unwrap().data(), body);
    }
}

#[test]
fn requests_of_many_sizes_come_back_whole() {
    for way in WAYS {
        let server = Server::start(way, "127.0.0.1:0", Role::Answers);
        let channel = way.open(server.address);
        for len in [0, 1, 1000, 5000, 100_000, 1 << 20] {
            let body: Vec<u8> = (0..=255).cycle().take(len).collect();
            let answer = block_on(channel.call(ECHO, &body).room(len.max(1))).unwrap();
            assert!(answer.data() == body, "{way:?}, {len} bytes");
        }
    }
}

#[test]
fn a_response_without_room_and_a_type_without_a_handler_are_errors() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Answers);
    let channel = Way::Shm.open(server.address);
    let error = block_on(channel.call(ECHO, &[7; 100]).room(10)).unwrap_err();
    assert_eq!(error.ran(), dunlin::Ran::Yes, "{error}");
    let error = block_on(channel.call(ReqType(77), b"")).unwrap_err();
    assert_eq!(error.ran(), dunlin::Ran::No, "{error}");
}

#[test]
fn a_program_sees_the_state_of_its_channel() {
    let server = Server::start(Way::Shm, &own_host(), Role::Answers);
    let channel = Way::Shm.open(server.address);
    block_on(channel.ready()).unwrap();
    assert_eq!(channel.state().state, State::Ready);
    let mut watch = channel.watch();
    assert_eq!(block_on(watch.changed()).unwrap().state, State::Ready);
    let address = server.address.to_string();
    drop(server);
    let gone = loop {
        let state = block_on(watch.changed()).unwrap();
        if state.state == State::Gone {
            break state;
        }
    };
    assert_eq!(gone.addresses[0].address, address);
    assert!(gone.addresses[0].last_error.is_some());
    let _server = Server::start(Way::Shm, &address, Role::Answers);
    while block_on(watch.changed()).unwrap().state != State::Ready {}
}

#[test]
fn names_are_looked_up() {
    let server = Server::start(Way::Udp, "127.0.0.1:0", Role::Answers);
    let channel = Way::Udp.open(format!("localhost:{}", server.address.port()));
    assert_eq!(
        block_on(channel.call(ECHO, b"by name")).unwrap().data(),
        b"by name"
    );
}

#[test]
fn channels_of_the_process_share_a_hub() {
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Answers);
    let open = || {
        Channel::builder()
            .address(server.address.to_string())
            .open()
            .unwrap()
    };
    let (one, two) = (open(), open());
    assert_eq!(one.hub().nexus().address(), two.hub().nexus().address());
    let calls = [one.call(ECHO, b"one"), two.call(ECHO, b"two")];
    for (call, expected) in calls.into_iter().zip([b"one", b"two"]) {
        assert_eq!(block_on(call).unwrap().data(), expected);
    }
}
