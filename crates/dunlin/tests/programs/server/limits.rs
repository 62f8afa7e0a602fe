//! Limits of services: messages that are too long, calls that are too many, and handlers that take
//! too long. The clients have sessions, so nothing is repeated.

use std::time::Duration;

use dunlin::service::Meta;
use dunlin::service::core::Register;
use dunlin::service::reflect::Returned;
use dunlin::{
    AsyncError, DeferredRequest, ErrorCode, LimitedRpc, Limits, Offload, Ran, ReflectError,
    Reflector, ReqType, RpcError, Running, ServeError, Ticket,
};
use futures::FutureExt;

use crate::server::layers::{Gate, Seen};
use crate::server::reflect::{Threads, client};
use crate::server::service::{Book, WorkClient, Worker};
use crate::server::shop::{Keeper, ShopClient, ShopPoll, ShopSendServer, ShopServer};
use crate::server::{PATIENCE, WAYS, Way, block_on, until};

const ANY: &str = "127.0.0.1:0";

/// The method's value, or the code and the proof with which the call ended.
fn call(client: &mut Reflector, method: &str, json: &str) -> Result<String, (ErrorCode, Ran)> {
    let called = client.call(method, json, None, &Meta::new());
    match called {
        Ok(Some(Returned::Value(json))) => Ok(json),
        Err(ReflectError::Call(AsyncError::Rpc(RpcError::Rejected(code, ran)))) => Err((code, ran)),
        other => panic!("{other:?}"),
    }
}

const TOO_LARGE: Result<String, (ErrorCode, Ran)> = Err((ErrorCode::TOO_LARGE, Ran::No));
const OVERLOADED: Result<String, (ErrorCode, Ran)> = Err((ErrorCode::OVERLOADED, Ran::No));
const TIMED_OUT: Result<String, (ErrorCode, Ran)> = Err((ErrorCode::TIMED_OUT, Ran::Unknown));

/// A server of one thread, with these limits and the layer of the tests of layers.
fn layered(way: Way, limits: Limits) -> (Running, Keeper, Seen) {
    let (keeper, seen) = (Keeper::default(), Seen::default());
    let (made, noted) = (keeper.clone(), seen.clone());
    let server = way.server().limits(limits).reflect(true);
    let server = server.service(move |_| ShopServer(made.clone()));
    let server = server.layer(move |handlers| Gate::new(handlers, &noted));
    (server.start(ANY).unwrap(), keeper, seen)
}

#[test]
fn a_message_above_the_limit_reaches_no_layer() {
    for way in WAYS {
        let (server, _, seen) = layered(way, Limits::default().max_message(16));
        let mut client = client(way, &server);
        assert_eq!(
            call(&mut client, "Shop.shout", r#""sixteen-letters!""#),
            Ok(r#""SIXTEEN-LETTERS!""#.to_owned())
        );
        assert_eq!(
            call(&mut client, "Shop.shout", r#""seventeen-letters""#),
            TOO_LARGE
        );
        assert_eq!(seen.lock().unwrap().len(), 1);
        // Metadata do not count.
        let mut meta = Meta::new();
        meta.add("tenant", "blue").unwrap();
        let called = client.call("Shop.shout", r#""sixteen-letters!""#, None, &meta);
        assert!(called.is_ok(), "{called:?}");
        let called = client.call("Shop.shout", r#""seventeen-letters""#, None, &meta);
        let Err(ReflectError::Call(AsyncError::Rpc(RpcError::Rejected(code, _)))) = called else {
            panic!("{called:?}");
        };
        assert_eq!(code, ErrorCode::TOO_LARGE);
        assert_eq!(seen.lock().unwrap().len(), 2);
    }
}

#[test]
fn calls_above_the_limit_are_refused_until_others_end() {
    for way in WAYS {
        let keeper = Keeper::default();
        let made = keeper.clone();
        let server = way.server().threads(2).reflect(true);
        let server = server.limits(Limits::default().max_calls(2));
        let server = server.service(move |_| ShopServer(made.clone()));
        let server = server.start(ANY).unwrap();
        let shop = ShopClient::over(way.open(server.address()));
        // One call on each thread: the limit holds for the whole server.
        let mut calls = [0, 1].map(|thread| Box::pin(shop.hang(&()).endpoint(thread)));
        until(|| {
            for call in &mut calls {
                assert!(call.now_or_never().is_none());
            }
            keeper.count() == 2
        });
        let mut client = client(way, &server);
        assert_eq!(call(&mut client, "Shop.visits", "null"), OVERLOADED);
        assert_eq!(call(&mut client, "Shop.visits", "null"), OVERLOADED);
        // The client gives up one call.
        drop(calls);
        until(|| call(&mut client, "Shop.visits", "null") == Ok("2".to_owned()));
    }
}

#[test]
fn a_call_without_a_deadline_ends_at_the_time_out() {
    let limits = Limits::default().timeout(Duration::from_millis(50));
    let limits = limits.max_calls(1);
    for way in WAYS {
        let (layered, keeper, _) = layered(way, limits);
        let sent = keeper.clone();
        let server = way.server().limits(limits).reflect(true);
        let offloaded =
            server.service(move |_| Offload::new(ShopSendServer(sent.clone()), Threads));
        for server in [layered, offloaded.start(ANY).unwrap()] {
            let mut client = client(way, &server);
            assert_eq!(call(&mut client, "Shop.hang", "null"), TIMED_OUT);
            // The call no longer runs, so its place is free.
            assert!(call(&mut client, "Shop.visits", "null").is_ok());
            // The client's own deadline counts instead.
            let deadline = Some(Duration::from_millis(200));
            let called = client.call("Shop.hang", "null", deadline, &Meta::new());
            let Err(ReflectError::Call(AsyncError::Rpc(RpcError::DeadlinePassed(_)))) = called
            else {
                panic!("{called:?}");
            };
        }
        assert_eq!(keeper.count(), 4);
    }
}

#[test]
fn a_service_has_its_own_limits_in_place_of_the_servers() {
    let book = std::sync::Arc::<Book>::default();
    let server = Way::Shm.server().reflect(true);
    let server = server.limits(Limits::default().max_message(0));
    let server = server.service(Worker::server(&book));
    let server = server.service_within(Limits::default(), |_| ShopServer(Keeper::default()));
    let server = server.start(ANY).unwrap();
    let mut client = client(Way::Shm, &server);
    assert_eq!(
        call(&mut client, "Shop.shout", "\"a\""),
        Ok("\"A\"".to_owned())
    );
    let work = WorkClient::over(Way::Shm.open(server.address()));
    let refused = block_on(work.run(&(1, 0))).unwrap_err().to_string();
    assert!(refused.contains("too large"), "{refused}");
    assert_eq!(block_on(work.thread(&())).unwrap(), 0);
}

#[test]
fn limits_of_a_server_with_poll_services_are_refused() {
    let server = Way::Shm
        .server()
        .limits(Limits::default().timeout(PATIENCE));
    let server = server.poll(|_| Keeper::default(), ShopPoll::register);
    let refused = server.start(ANY).map(drop);
    assert!(
        matches!(refused, Err(ServeError::LimitsOfPolls)),
        "{refused:?}"
    );
    let server = Way::Shm.server();
    let server = server.poll_within(
        Limits::default(),
        |_| (),
        |rpc| {
            rpc.register_batch(ReqType(1), 8, |(), _, _| {});
        },
    );
    let refused = server.start(ANY).map(drop);
    assert!(
        matches!(refused, Err(ServeError::LimitsOfPolls)),
        "{refused:?}"
    );
}

/// A limit that no message can exceed, because the endpoint receives no message of that length.
#[test]
fn a_limit_above_the_longest_message_of_the_endpoint_is_an_error() {
    let (least, most) = (1 << 20, 2 << 20);
    let server = || {
        let server = Way::Shm.server().threads(2);
        server.endpoint(move |builder| builder.config(|config| config.max_message = 1 << 20))
    };
    let limits = |bytes| Limits::default().max_message(bytes);
    let shop = |_: &_| ShopServer(Keeper::default());
    let start = |bytes| {
        [
            server().limits(limits(bytes)).service(move |it| shop(&it)),
            server().service_within(limits(bytes), move |it| shop(&it)),
            server().poll_within(limits(bytes), |_| Keeper::default(), ShopPoll::register),
        ]
        .map(|server| server.start(ANY).map(drop))
    };
    for refused in start(most) {
        let what = refused.unwrap_err().to_string();
        let names = [
            "`server.max_message` is 2097152",
            "`endpoint.max_message` 1048576",
            "raise",
        ];
        assert!(names.iter().all(|name| what.contains(name)), "{what}");
    }
    for started in start(least) {
        started.unwrap();
    }
    // The limit of the other services counts only if there are such services.
    let own = server().limits(limits(most));
    let own = own.service_within(limits(least), move |it| shop(&it));
    own.start(ANY).map(drop).unwrap();
}

#[test]
fn a_message_above_the_limit_reaches_no_handler_of_the_poll_api() {
    for way in WAYS {
        let keeper = Keeper::default();
        let made = keeper.clone();
        let server = way.server().reflect(true).poll_within(
            Limits::default().max_message(16),
            move |_| made.clone(),
            ShopPoll::register,
        );
        let server = server.start(ANY).unwrap();
        let mut client = client(way, &server);
        assert_eq!(
            call(&mut client, "Shop.shout", r#""sixteen-letters!""#),
            Ok(r#""SIXTEEN-LETTERS!""#.to_owned())
        );
        assert_eq!(
            call(&mut client, "Shop.shout", r#""seventeen-letters""#),
            TOO_LARGE
        );
        // Metadata do not count.
        let mut meta = Meta::new();
        meta.add("tenant", "blue").unwrap();
        let called = client.call("Shop.shout", r#""sixteen-letters!""#, None, &meta);
        assert!(called.is_ok(), "{called:?}");
    }
}

/// Keeps each request of its only type until a request of another type comes.
#[derive(Default)]
struct Hoard {
    kept: Vec<(Ticket, DeferredRequest)>,
    /// Requests that were taken away.
    taken: u64,
}

const KEEP: ReqType = ReqType(1);
const LET_GO: ReqType = ReqType(2);

impl Hoard {
    fn register(rpc: &mut LimitedRpc<Self>) {
        rpc.add_service("Keep");
        rpc.on(KEEP, |hoard, request, cx| {
            let ticket = request.ticket(cx);
            hoard.kept.push((ticket, request.defer(cx)));
        });
        rpc.add_service("LetGo");
        rpc.on(LET_GO, |hoard, request, cx| {
            for (_, kept) in hoard.kept.drain(..) {
                kept.reply_bytes(cx, b"at last");
            }
            request.reply_bytes(cx, &hoard.taken.to_le_bytes());
        });
        rpc.on_given_up(|hoard, ticket, _| {
            hoard.kept.retain(|(kept, _)| *kept != ticket);
            hoard.taken += 1;
        });
    }
}

/// Also: each service has limits of its own, and each thread its part of the calls.
#[test]
fn requests_that_a_program_keeps_are_bounded_in_number_and_in_time() {
    for way in WAYS {
        let limits = Limits::default().max_calls(3);
        let hoard = |limits| {
            let server = way.server().threads(2);
            let server = server.poll_within(limits, |_| Hoard::default(), Hoard::register);
            server.start(ANY).unwrap()
        };
        let server = hoard(limits);
        let channel = way.open(server.address());
        let keep = || Box::pin(channel.call(KEEP, b"").endpoint(0));
        let mut kept = [keep(), keep()];
        for call in &mut kept {
            assert!(call.now_or_never().is_none());
        }
        let refused = RpcError::Rejected(ErrorCode::OVERLOADED, Ran::No);
        let refused = AsyncError::Rpc(refused).to_string();
        let error = block_on(keep()).unwrap_err().to_string();
        assert!(error.starts_with(&refused), "{error}");
        let taken = block_on(channel.call(LET_GO, b"").endpoint(0)).unwrap();
        assert_eq!(taken.data(), 0_u64.to_le_bytes());
        for call in kept {
            assert_eq!(block_on(call).unwrap().data(), b"at last");
        }
        // Answered calls no longer count.
        assert!(keep().now_or_never().is_none());
        drop(server);

        let server = hoard(limits.timeout(Duration::from_millis(20)));
        let channel = way.open(server.address());
        let late = block_on(channel.call(KEEP, b"").endpoint(0)).unwrap_err();
        assert_eq!(late.ran(), Ran::Unknown);
        assert!(late.to_string().contains("time"), "{late}");
        let taken = block_on(channel.call(LET_GO, b"").endpoint(0)).unwrap();
        assert_eq!(taken.data(), 1_u64.to_le_bytes());
    }
}
