//! New links to a server when all links to it are full: they go to its other endpoints, or to the
//! same ones again.

use super::*;

/// Calls until no further link opens. Each link has a window of one request. Returns the endpoints
/// to which the links lead, in the order of their opening.
fn endpoints(config: Config, at_server: u32) -> Vec<u32> {
    let mut machine = Machine::new(config, 1, Nanos::ZERO);
    machine.on_addresses(["a"], Nanos::ZERO);
    let mut endpoints = Vec::new();
    for _ in 0..50 {
        call(&mut machine, false, Nanos::ZERO);
        while let Some(action) = machine.poll(Nanos::ZERO) {
            let Action::Connect { link, endpoint, .. } = action else {
                continue;
            };
            let endpoint = endpoint.unwrap_or(0);
            endpoints.push(endpoint);
            let opened = Opened {
                endpoint,
                endpoints: at_server,
                window: 1,
                ..OPENED
            };
            machine.on_opened(link, &opened, Nanos::ZERO);
        }
    }
    endpoints
}

#[test]
fn new_links_are_spread_over_the_endpoints_of_a_server() {
    let eight = endpoints(Config::DEFAULT, 2);
    assert_eq!(eight, [0, 1, 0, 1, 0, 1, 0, 1]);
    let elastic = Config {
        links_per_endpoint: 1,
        ..Config::DEFAULT
    };
    assert_eq!(endpoints(elastic, 1), [0]);
    assert_eq!(endpoints(elastic, 3), [0, 1, 2]);
    assert_eq!(endpoints(elastic, 9), [0, 1, 2, 3], "it uses four of them");
}

#[test]
fn a_call_to_another_endpoint_gets_a_link_of_its_own() {
    let config = Config {
        links_per_endpoint: 1,
        ..Config::DEFAULT
    };
    let (mut machine, links) = open(&["a"], config);
    for _ in 0..3 {
        let terms = Terms {
            endpoint: Some(7),
            ..Terms::default()
        };
        machine.on_call(terms, MILLI).expect("there is room");
    }
    let Some(Action::Connect { link, endpoint, .. }) = machine.poll(MILLI) else {
        panic!("it has no link to that endpoint");
    };
    assert_eq!(endpoint, Some(7));
    assert_eq!(machine.poll(MILLI), None, "one link is enough");
    let opened = Opened {
        endpoint: 7,
        ..OPENED
    };
    machine.on_opened(link, &opened, MILLI);
    for _ in 0..3 {
        assert_eq!(sent(&mut machine, MILLI).1, link);
    }
    assert_ne!(link, links[0]);
}
