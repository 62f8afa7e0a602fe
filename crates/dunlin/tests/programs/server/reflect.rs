//! Servers whose methods clients call by JSON: each codec, values, errors and methods without an
//! answer, on each kind of server; and servers that do not allow it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dunlin::service::Meta;
use dunlin::service::reflect::Returned;
use dunlin::{
    AsyncError, Auto, ErrorCode, Nexus, Offload, Ran, ReflectError, Reflector, Rpc, RpcError,
    Running, ServerBuilder, Spawn,
};

use crate::server::layers::{Gate, Seen};
use crate::server::service::{Book, Worker};
use crate::server::shop::{Keeper, ShopPoll, ShopSendServer, ShopServer};
use crate::server::{PATIENCE, WAYS, Way, block_on, until};

const ANY: &str = "127.0.0.1:0";

fn connect(way: Way, server: &Running) -> Result<Reflector, ReflectError> {
    let nexus: Nexus = way.nexus().hidden(true).bind(ANY).unwrap();
    Reflector::connect(nexus.endpoint_builder::<Auto>(), server.address(), PATIENCE)
}

pub(crate) fn client(way: Way, server: &Running) -> Reflector {
    connect(way, server).unwrap()
}

/// Runs each future on a thread of its own.
pub(crate) struct Threads;

impl Spawn for Threads {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        std::thread::spawn(|| block_on(future));
    }
}

/// Servers of futures, of futures elsewhere, and of the poll API.
fn servers(way: Way) -> [ServerBuilder; 3] {
    let keeper = Keeper::default;
    let (futures, sent, polled) = (keeper(), keeper(), keeper());
    [
        way.server().service(move |_| ShopServer(futures.clone())),
        way.server()
            .service(move |_| Offload::new(ShopSendServer(sent.clone()), Threads)),
        way.server()
            .poll(move |_| polled.clone(), ShopPoll::register),
    ]
}

/// The JSON of a value, or of the method's own error after `error `.
fn shown(returned: Option<Returned>) -> String {
    match returned {
        None => "nothing".to_owned(),
        Some(Returned::Value(json)) => json,
        Some(Returned::Error(json)) => format!("error {json}"),
    }
}

#[test]
fn each_codec_takes_json_on_each_kind_of_server() {
    for way in WAYS {
        for server in servers(way) {
            let server = server.reflect(true).start(ANY).unwrap();
            let mut client = client(way, &server);
            for (method, json, returned) in [
                (
                    "Shop.price",
                    r#"{"number": 7, "letters": [1, 2]}"#,
                    r#"{"cents":35}"#,
                ),
                (
                    "Shop.price",
                    r#"{"number": 700, "letters": [1, 2]}"#,
                    r#"error {"newest":99}"#,
                ),
                (
                    "Shop.grown",
                    r#"{"letters": [1, 2], "number": 18446744073709551615}"#,
                    r#"{"number":18446744073709551615,"letters":[1,2]}"#,
                ),
                ("Shop.order", r#"{"items": [1, 2]}"#, "15"),
                ("Shop.order", r#"{"items": []}"#, r#"error "Empty""#),
                (
                    "Shop.order",
                    r#"{"items": [100], "note": "soon"}"#,
                    r#"error {"Unknown":{"item":100}}"#,
                ),
                (
                    "Shop.greet",
                    r#"{"name": "Ada", "age": 36}"#,
                    r#"{"name":"Ada","age":37}"#,
                ),
                ("Shop.shout", r#""a word""#, r#""A WORD""#),
                ("Shop.visit", "null", "nothing"),
                ("Shop.visit", "null", "nothing"),
                ("Shop.visits", "null", "2"),
            ] {
                let called = client.call(method, json, None, &Meta::new());
                assert_eq!(shown(called.unwrap()), returned, "{way:?}: {method} {json}");
            }
        }
    }
}

#[test]
fn a_call_has_its_deadline_and_metadata() {
    for server in servers(Way::Shm) {
        let server = server.reflect(true).start(ANY).unwrap();
        let mut client = client(Way::Shm, &server);
        let mut meta = Meta::new();
        meta.add("tenant", "blue").unwrap();
        for (deadline, meta, said) in [
            (None, &Meta::new(), r#"["Shop.context",null,false]"#),
            (Some(PATIENCE), &meta, r#"["Shop.context","blue",true]"#),
        ] {
            let called = client.call("Shop.context", "null", deadline, meta).unwrap();
            assert_eq!(shown(called), said);
        }
    }
}

#[test]
fn a_call_that_never_completes_ends_at_its_deadline() {
    let [server, ..] = servers(Way::Shm);
    let server = server.reflect(true).start(ANY).unwrap();
    let mut client = client(Way::Shm, &server);
    let begin = Instant::now();
    let hung = client.call(
        "Shop.hang",
        "null",
        Some(Duration::from_millis(50)),
        &Meta::new(),
    );
    let Err(ReflectError::Call(AsyncError::Rpc(RpcError::DeadlinePassed(_)))) = hung else {
        panic!("{hung:?}");
    };
    assert!(begin.elapsed() >= Duration::from_millis(50));
    // The sessions are still there.
    let visits = client.call("Shop.visits", "null", None, &Meta::new());
    assert_eq!(shown(visits.unwrap()), "1");
}

#[test]
fn layers_get_the_call_as_they_get_any_other() {
    let [server, ..] = servers(Way::Shm);
    let seen = Seen::default();
    let gate = Arc::clone(&seen);
    let server = server.layer(move |handlers| Gate::new(handlers, &gate));
    let server = server.reflect(true).start(ANY).unwrap();
    let mut client = client(Way::Shm, &server);
    let mut red = Meta::new();
    red.add("tenant", "red").unwrap();
    let refused = client.call("Shop.visit", "null", None, &red);
    let Err(ReflectError::Call(AsyncError::Rpc(RpcError::Rejected(code, ran)))) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((code, ran), (ErrorCode::application(7), Ran::Yes));
    let visits = client.call("Shop.visits", "null", None, &Meta::new());
    assert_eq!(shown(visits.unwrap()), "0");
    let expected = [("Shop.visit", "red"), ("Shop.visits", "")];
    let expected = expected.map(|(method, tenant)| (method.to_owned(), tenant.to_owned()));
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn json_that_does_not_fit_never_reaches_the_handler() {
    let [server, ..] = servers(Way::Shm);
    let server = server.reflect(true).start(ANY).unwrap();
    let mut client = client(Way::Shm, &server);
    for (method, json, said) in [
        (
            "Shop.price",
            "{}",
            "field `number` is missing; expected u64",
        ),
        (
            "Shop.order",
            r#"{"items": [1, "x"]}"#,
            "field `items[1]`: expected u64, found a string",
        ),
        (
            "Shop.greet",
            r#"{"name": "Ada", "age": 36, "agge": 1}"#,
            "field `agge` is unknown; Person has the fields name: string, age: u32",
        ),
        ("Shop.visit", "7", "expected (), found 7"),
        (
            "Shop.shout",
            r#""panic""#,
            "the code that converts this message panicked",
        ),
        (
            "Shop.shout",
            r#""\u0000""#,
            "the method's codec cannot encode this value",
        ),
    ] {
        let misfit = client.call(method, json, None, &Meta::new());
        let Err(ReflectError::Misfit(misfit)) = misfit else {
            panic!("{misfit:?}");
        };
        assert_eq!(misfit, said);
    }
    let visits = client.call("Shop.visits", "null", None, &Meta::new());
    assert_eq!(shown(visits.unwrap()), "0");
    // The handler ran, and its codec cannot encode the value.
    let lost = client.call("Shop.shout", r#""nothing""#, None, &Meta::new());
    let Err(ReflectError::Call(AsyncError::Rpc(RpcError::Rejected(code, _)))) = lost else {
        panic!("{lost:?}");
    };
    assert_eq!(code, ErrorCode::HANDLER_FAILED);
}

#[test]
fn the_error_of_an_unknown_method_lists_the_known_methods() {
    let book = Arc::<Book>::default();
    let [server, ..] = servers(Way::Shm);
    let server = server.service(Worker::server(&book)).reflect(true);
    let server = server.start(ANY).unwrap();
    let mut client = client(Way::Shm, &server);
    let long = "x".repeat(256);
    for (method, said) in [
        (
            "Ship.price",
            "there is no service `Ship`; the services are Shop, Work",
        ),
        (
            "price",
            "there is no service `price`; the services are Shop, Work",
        ),
        (
            "Shop.prize",
            "there is no method `Shop.prize`; the methods are Shop.price, Shop.grown, Shop.order, \
             Shop.greet, Shop.shout, Shop.visit, Shop.visits, Shop.context, Shop.hang",
        ),
        (
            "Work.run",
            "`Work.run` cannot be called by JSON: its trait lacks the option `reflect`",
        ),
        (&long, "a method's name has at most 255 bytes"),
    ] {
        let unknown = client.call(method, "null", None, &Meta::new());
        let Err(ReflectError::NoSuchMethod(reason)) = unknown else {
            panic!("{unknown:?}");
        };
        assert_eq!(reason, said);
    }
    let described = client.describe().unwrap();
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    let services = described["services"].as_array().unwrap();
    let names: Vec<_> = services.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["Shop", "Work"]);
    assert_eq!(services[0]["methods"][0]["name"], "Shop.price");
    assert_eq!(services[0]["methods"][0]["number"], 601);
    assert!(services[1].get("methods").is_none());
}

#[test]
fn a_server_without_reflection_says_so() {
    for health in [true, false] {
        for server in servers(Way::Shm) {
            let server = server.health(health).start(ANY).unwrap();
            let described = connect(Way::Shm, &server).and_then(|mut it| it.describe());
            assert!(
                matches!(described, Err(ReflectError::NoReflection)),
                "{described:?}"
            );
        }
    }
    // A process without a `Server`.
    let nexus = Way::Shm.nexus().bind(ANY).unwrap();
    let mut rpc: Rpc<Auto, ()> = nexus.endpoint(()).unwrap();
    let address = nexus.address();
    let asking = std::thread::spawn(move || {
        let nexus = Way::Shm.nexus().hidden(true).bind(ANY).unwrap();
        Reflector::connect(nexus.endpoint_builder::<Auto>(), address, PATIENCE).map(drop)
    });
    until(|| {
        rpc.run_once();
        asking.is_finished()
    });
    let described = asking.join().unwrap();
    assert!(
        matches!(described, Err(ReflectError::NoReflection)),
        "{described:?}"
    );
}

#[test]
fn reflection_does_not_need_health() {
    let [server, ..] = servers(Way::Shm);
    let server = server.health(false).reflect(true).start(ANY).unwrap();
    let visits = client(Way::Shm, &server).call("Shop.visits", "null", None, &Meta::new());
    assert_eq!(shown(visits.unwrap()), "0");
    let nexus: Nexus = Way::Shm.nexus().hidden(true).bind(ANY).unwrap();
    let from = nexus.endpoint_builder::<Auto>();
    let health = dunlin::ask_health(from, server.address(), "", PATIENCE);
    assert!(
        matches!(health, Err(dunlin::HealthError::NoHealth)),
        "{health:?}"
    );
}
