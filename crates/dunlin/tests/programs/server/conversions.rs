//! Conversions of messages to JSON and back that take long, need much stack or yield much text, and
//! servers whose services cannot be told apart by name.

use std::sync::atomic::{AtomicBool, Ordering};

use dunlin::service::{Context, Fixed, Postcard};
use dunlin::service::{Meta, reflect::Returned};
use dunlin::{
    Auto, HealthState, Nexus, Ran, ReflectError, Reflector, Running, ServeError, ServerThread,
    ask_health, service,
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::server::{PATIENCE, Way, until};

static IS_AT_GATE: AtomicBool = AtomicBool::new(false);
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// A message whose conversion from JSON waits until a test lets it go on.
#[derive(Serialize)]
struct Gate;

impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let is_json = from.is_human_readable();
        <()>::deserialize(from)?;
        if is_json {
            IS_AT_GATE.store(true, Ordering::Relaxed);
            until(|| IS_OPEN.load(Ordering::Relaxed));
        }
        Ok(Self)
    }
}

#[service(codec = Postcard, reflect)]
trait Heavy {
    #[method(1)]
    fn pass(gate: Gate) -> u8;
    #[method(2, codec = Fixed)]
    fn take(block: [u8; 1 << 20]) -> u8;
    /// This many bytes, each with three digits and a comma in JSON.
    #[method(3)]
    fn give(len: u32) -> Vec<u8>;
}

struct Weights;

impl Heavy for Weights {
    async fn pass(&self, _: Gate, _: Context<'_>) -> u8 {
        7
    }

    async fn take(&self, block: &[u8; 1 << 20], _: Context<'_>) -> u8 {
        block[block.len() - 1]
    }

    async fn give(&self, len: u32, _: Context<'_>) -> Vec<u8> {
        vec![255; len.try_into().unwrap()]
    }
}

fn start() -> Running {
    let server = Way::Shm.server().service(|_| HeavyServer(Weights));
    server.reflect(true).start("127.0.0.1:0").unwrap()
}

fn asker() -> Nexus {
    let nexus = Way::Shm.nexus().hidden(true);
    nexus.bind("127.0.0.1:0").unwrap()
}

fn call(server: &Running, method: &str, json: &str) -> Result<Option<Returned>, ReflectError> {
    let from = asker().endpoint_builder::<Auto>();
    let mut client = Reflector::connect(from, server.address(), PATIENCE)?;
    client.call(method, json, None, &Meta::new())
}

fn value(json: &str) -> Option<Returned> {
    Some(Returned::Value(json.to_owned()))
}

#[test]
fn a_conversion_that_takes_long_delays_no_answer_about_health() {
    let server = start();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(&server, "Heavy.pass", "null"));
        until(|| IS_AT_GATE.load(Ordering::Relaxed));
        let health = ask_health(
            asker().endpoint_builder::<Auto>(),
            server.address(),
            "",
            PATIENCE,
        );
        assert!(matches!(health, Ok(HealthState::Serving)), "{health:?}");
        assert!(!calling.is_finished());
        IS_OPEN.store(true, Ordering::Relaxed);
        assert_eq!(calling.join().unwrap().unwrap(), value("7"));
    });
}

#[test]
fn a_large_message_of_a_fixed_layout_has_the_stack_that_it_needs() {
    let block = format!("[{}7]", "0,".repeat((1 << 20) - 1));
    let called = call(&start(), "Heavy.take", &block);
    assert_eq!(called.unwrap(), value("7"));
}

#[test]
fn an_error_after_the_call_shows_that_the_method_ran() {
    let server = start();
    assert_eq!(call(&server, "Heavy.give", "1").unwrap(), value("[255]"));
    let lost = call(&server, "Heavy.give", "2000000").unwrap_err();
    assert_eq!(lost.ran(), Ran::Yes, "{lost:?}");
    let said = lost.to_string();
    assert!(said.starts_with("the method ran, but"), "{said}");
    let misfit = call(&server, "Heavy.give", "-1").unwrap_err();
    assert_eq!(misfit.ran(), Ran::No, "{misfit:?}");
}

mod next {
    use dunlin::service;
    use dunlin::service::{Context, Fixed};

    #[service(codec = Fixed, reflect, base = 100)]
    pub(super) trait Heavy {
        #[method(1)]
        fn lift(nothing: ()) -> u8;
    }

    impl Heavy for super::Weights {
        async fn lift(&self, (): &(), _: Context<'_>) -> u8 {
            8
        }
    }
}

#[test]
fn two_services_of_one_name_are_not_reflected() {
    for reflect in [false, true] {
        let server = Way::Shm.server().threads(2);
        let server = server.service(|_: ServerThread| HeavyServer(Weights));
        let server = server.service(|_: ServerThread| next::HeavyServer(Weights));
        let started = server.reflect(reflect).start("127.0.0.1:0");
        match reflect {
            true => assert!(
                matches!(started, Err(ServeError::SameName("Heavy"))),
                "{started:?}"
            ),
            false => drop(started.unwrap()),
        }
    }
}
