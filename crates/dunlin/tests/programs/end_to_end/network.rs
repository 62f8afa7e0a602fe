//! A network that breaks between client and server: the link goes down, or packets arrive in one
//! direction only. Both sides must notice in time, and connect again when the network is mended.

use std::time::{Duration, Instant};

use dunlin::{Auto, Udp};
use dunlin_testkit::network::{Host, Network};

use crate::end_to_end::Named;
use crate::end_to_end::client::{Client, FAILURE, MARGIN, PATIENCE, assert_peer_failed};
use crate::end_to_end::process::Server;
use crate::end_to_end::server::HOLD;

/// How a network breaks, and is mended.
struct Break {
    what: &'static str,
    begin: fn(&Network) -> Result<(), String>,
    end: fn(&Network) -> Result<(), String>,
}

const LINK_DOWN: Break = Break {
    what: "the link is down",
    begin: |network| network.left.ip("link set link0 down"),
    end: |network| network.left.ip("link set link0 up"),
};

const NOTHING_TO_THE_CLIENT: Break = Break {
    what: "nothing reaches the client",
    begin: |network| hide(&network.right, &network.left, "add"),
    end: |network| hide(&network.right, &network.left, "del"),
};

const NOTHING_TO_THE_SERVER: Break = Break {
    what: "nothing reaches the server",
    begin: |network| hide(&network.left, &network.right, "add"),
    end: |network| hide(&network.left, &network.right, "del"),
};

/// Packets from `from` to `to` vanish; packets from `to` to `from` arrive.
fn hide(from: &Host, to: &Host, verb: &str) -> Result<(), String> {
    from.ip(&format!("route {verb} blackhole {}/32", to.address))
}

fn broken<T: Named>(network: &Network, kind: &Break) {
    let at = format!("{}:0", network.right.address);
    let server = network.right.run(|| Server::start::<T>(&at));
    network.left.run(move || {
        let mut client = Client::<T>::at(&format!("{}:0", network.left.address), 0);
        let session = client.connect(server.address);
        client.exchange(session);
        (kind.begin)(network).unwrap();
        let begin = Instant::now();
        client.call(session, HOLD, b"", 0);
        for _ in 0..20 {
            client.mark(session);
        }
        let ended = client.finish(21, FAILURE + MARGIN);
        println!("{}: {} for {:?}", T::NAME, kind.what, begin.elapsed());
        assert_peer_failed(&ended);
        let theirs = server.expect("closed");
        assert!(theirs == "PeerFailed" || theirs == "Reset", "{theirs}");
        assert!(
            begin.elapsed() < 2 * (FAILURE + MARGIN),
            "the server took long"
        );
        (kind.end)(network).unwrap();
        let mended = Instant::now();
        let session = loop {
            match client.try_connect(server.address) {
                Ok(session) => break session,
                Err(error) => assert!(mended.elapsed() < PATIENCE, "{}: {error}", kind.what),
            }
        };
        client.exchange(session);
        client.rpc.run_for(Duration::from_millis(100));
        let stats = client.stats(session);
        assert_eq!((stats.twice, stats.sessions), (0, 1), "{stats:?}");
    });
}

#[test]
fn a_link_that_goes_down_is_noticed_on_both_sides() {
    let Some(network) = Network::new() else {
        return;
    };
    broken::<Udp>(&network, &LINK_DOWN);
    broken::<Auto>(&network, &LINK_DOWN);
}

#[test]
fn loss_towards_the_client_alone_is_noticed_on_both_sides() {
    let Some(network) = Network::new() else {
        return;
    };
    broken::<Udp>(&network, &NOTHING_TO_THE_CLIENT);
    broken::<Auto>(&network, &NOTHING_TO_THE_CLIENT);
}

#[test]
fn loss_towards_the_server_alone_is_noticed_on_both_sides() {
    let Some(network) = Network::new() else {
        return;
    };
    broken::<Udp>(&network, &NOTHING_TO_THE_SERVER);
    broken::<Auto>(&network, &NOTHING_TO_THE_SERVER);
}

/// Neither side advertises an address: each learns the other's from the control connection.
fn everywhere<C: Named, S: Named>(network: &Network) {
    let server = network.right.run(|| Server::start::<S>("0.0.0.0:0"));
    let address = (network.right.address, server.address.port());
    network.left.run(move || {
        let mut client = Client::<C>::at("0.0.0.0:0", 0);
        let session = client.rpc.connect_blocking(address).unwrap();
        client.exchange(session);
    });
}

#[test]
fn hosts_that_are_bound_to_every_address_meet() {
    let Some(network) = Network::new() else {
        return;
    };
    everywhere::<Udp, Udp>(&network);
    everywhere::<Auto, Auto>(&network);
    everywhere::<Udp, Auto>(&network);
    everywhere::<Auto, Udp>(&network);
}

#[test]
fn a_link_that_is_down_for_a_moment_costs_no_session() {
    let Some(network) = Network::new() else {
        return;
    };
    let at = format!("{}:0", network.right.address);
    let server = network.right.run(|| Server::start::<Udp>(&at));
    let network = &network;
    network.left.run(move || {
        let mut client = Client::<Udp>::at(&format!("{}:0", network.left.address), 0);
        let session = client.connect(server.address);
        for _ in 0..3 {
            client.exchange(session);
            (LINK_DOWN.begin)(network).unwrap();
            client.mark(session);
            client.rpc.run_for(Duration::from_millis(150));
            (LINK_DOWN.end)(network).unwrap();
            let done = client.finish(1, PATIENCE).remove(0);
            assert_eq!(done.result, Ok(()));
        }
        let stats = client.stats(session);
        assert_eq!((stats.twice, stats.sessions), (0, 1), "{stats:?}");
    });
}
