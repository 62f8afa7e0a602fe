//! Inquiries between planes: every question gets one account, whatever the endpoint does.

use dunlin_core::Account;
use dunlin_wire::control::{Fate, Features};
use dunlin_wire::{ReqNum, SessionNum, Token};

use super::*;

const REQUESTS: [ReqNum; 2] = [ReqNum(3), ReqNum(4)];

/// A client with an open session, and its server.
fn connected() -> (World, [usize; 2], SessionKey) {
    let mut world = World::new(5);
    let (client, server) = (world.node(1, 1), world.node(2, 1));
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.run(SOON);
    assert!(is_open(world.seen(client, key)));
    (world, [client, server], key)
}

fn inquire(world: &mut World, node: usize, key: SessionKey) {
    let (now, requests) = (world.now, REQUESTS.to_vec());
    world
        .plane(node)
        .on_command(Command::Inquire { key, requests }, now);
    world.settle();
}

fn accounts(world: &mut World, node: usize) -> Vec<Account> {
    std::mem::take(&mut world.nodes[node].accounts)
}

#[test]
fn an_endpoint_that_iterates_gives_the_account_itself() {
    let (mut world, [client, server], key) = connected();
    inquire(&mut world, client, key);
    world.run(SOON);
    let fates = REQUESTS.map(|req| (req, Fate::Running)).to_vec();
    assert_eq!(accounts(&mut world, client), [Account::Fates(fates)]);
    assert!(world.plane(server).inquiries.is_empty());
    assert_eq!(world.plane(server).counters().answered_for_busy, 0);
}

#[test]
fn the_control_thread_answers_for_an_endpoint_that_does_not_iterate() {
    let (mut world, [client, server], key) = connected();
    world.nodes[server].mute = true;
    let timeout = world.config.heartbeat.timeout;
    for turn in 1..=3_u64 {
        inquire(&mut world, client, key);
        world.run(timeout);
        let [Account::Away(away)] = accounts(&mut world, client)[..] else {
            panic!("not exactly one account for the question");
        };
        // The endpoint has been away since the first question.
        let due = timeout.times(turn - 1) + Nanos(timeout.0 / 8);
        // Frames take varying times.
        let (earliest, latest) = (due.since(SOON), due + SOON);
        assert!(earliest < away && away < latest, "{away:?} for {turn}");
    }
    assert_eq!(
        world.nodes[server].inquired.len(),
        1,
        "the endpoint's queue has one inquiry"
    );
    // The endpoint comes back and finds one question. The peer no longer waits for its answer.
    let theirs = world.nodes[server].inquired[0];
    let now = world.now;
    let fates = vec![(ReqNum(3), Fate::Answered)];
    let answer = Command::Account { key: theirs, fates };
    world.plane(server).on_command(answer, now);
    world.run(SOON);
    assert_eq!(accounts(&mut world, client), []);
    assert!(world.plane(server).inquiries.is_empty());
    assert_eq!(world.plane(server).counters().answered_for_busy, 3);
}

#[test]
fn a_process_of_an_old_release_is_not_asked() {
    let (mut world, [client, server], key) = connected();
    for link in world.plane(client).links.values_mut() {
        link.peer.as_mut().unwrap().features = Features::default();
    }
    inquire(&mut world, client, key);
    assert_eq!(accounts(&mut world, client), [Account::Nothing]);
    world.run(SOON);
    assert!(world.nodes[server].inquired.is_empty());
}

#[test]
fn an_account_that_was_not_asked_for_is_ignored_and_so_is_a_strange_inquiry() {
    let (mut world, [client, server], key) = connected();
    let theirs = *world.open(server).first().unwrap();
    let now = world.now;
    // The server answers a question that no client asked, and a question about a session that does
    // not exist.
    let fates = vec![(ReqNum(3), Fate::Gone)];
    let answer = Command::Account { key: theirs, fates };
    world.plane(server).on_command(answer, now);
    let strange = SessionKey {
        session: SessionNum(77),
        token: Token(7),
        ..key
    };
    inquire(&mut world, client, strange);
    world.run(SOON);
    assert_eq!(accounts(&mut world, client), []);
    assert!(world.nodes[server].inquired.is_empty());
}

#[test]
fn an_inquiry_ends_with_its_session() {
    let (mut world, [client, server], key) = connected();
    world.nodes[server].mute = true;
    inquire(&mut world, client, key);
    world.run(Nanos::from_millis(5));
    assert!(!world.plane(server).inquiries.is_empty());
    world.disconnect(client, key);
    world.run(SOON);
    assert!(world.plane(server).inquiries.is_empty());
    let key = world.connect(client, server, FIRST, PATIENCE);
    world.nodes[server].mute = false;
    world.run(SOON);
    inquire(&mut world, client, key);
    world.run(Nanos::from_millis(5));
    world.kill(client);
    world.run(Nanos::from_secs(2));
    assert!(world.plane(server).inquiries.is_empty());
}
