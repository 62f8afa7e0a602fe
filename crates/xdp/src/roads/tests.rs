//! The kernel's tables in a network of our own. Needs root and `ip`.

use std::time::{Duration, Instant};

use dunlin_testkit::network::{Host, Network};

use super::*;

fn tables(host: &Host) -> (Tables, Link) {
    host.run(|| {
        let index = ffi::interface_index(c"link0").unwrap();
        Tables::open(index).unwrap()
    })
}

/// The first change that fits, within five seconds.
fn until(tables: &mut Tables, fits: impl Fn(&Change) -> bool) -> Change {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        match tables.change() {
            Some(change) if fits(&change) => return change,
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    panic!("no such change came");
}

/// More events than the socket has room for.
const LOST: u32 = 600;

fn set_neighbour(host: &Host, ip: &str, mac: &str) {
    host.ip(&format!(
        "neigh replace {ip} lladdr {mac} dev link0 nud permanent"
    ))
    .unwrap();
}

#[test]
fn roads_lead_to_neighbours_and_through_gateways() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut tables, link) = tables(&network.left);
    assert!(link.is_up);
    assert_eq!(link.mtu, 1500);
    let right: IpAddr = network.right.address.parse().unwrap();
    let road = tables.road(right).unwrap().unwrap();
    assert_eq!(
        road,
        Road {
            hop: right,
            neighbour: Neighbour::default(),
            mtu: None,
        }
    );
    set_neighbour(&network.left, network.right.address, "02:00:00:00:00:07");
    let mac = Some([2, 0, 0, 0, 0, 7]);
    assert_eq!(tables.road(right).unwrap().unwrap().neighbour.mac, mac);
    let far: IpAddr = "10.200.0.1".parse().unwrap();
    assert_eq!(tables.road(far).unwrap(), None, "there is no route");
    let via = format!("route add 10.200.0.0/16 via {}", network.right.address);
    network.left.ip(&via).unwrap();
    let road = tables.road(far).unwrap().unwrap();
    assert_eq!((road.hop, road.neighbour.mac, road.mtu), (right, mac, None));
    let narrow = format!("route change 10.200.0.0/16 via {}", network.right.address);
    network.left.ip(&format!("{narrow} mtu 1300")).unwrap();
    assert_eq!(tables.road(far).unwrap().unwrap().mtu, Some(1300));
    assert_eq!(tables.mtu(far).unwrap(), Some(1300));
    assert_eq!(tables.mtu(right).unwrap(), None);
    network.left.ip(&format!("{narrow} mtu lock 1300")).unwrap();
    assert_eq!(tables.road(far).unwrap().unwrap().mtu, Some(0));
    let own: IpAddr = network.left.address.parse().unwrap();
    assert_eq!(
        tables.road(own).unwrap(),
        None,
        "to ourselves no road leads over the interface"
    );
    assert_eq!(tables.road("127.0.0.1".parse().unwrap()).unwrap(), None);
    assert!(tables.mtu(own).is_err());
    let right: IpAddr = network.right.address_6.parse().unwrap();
    set_neighbour(&network.left, network.right.address_6, "02:00:00:00:00:09");
    assert_eq!(
        tables.road(right).unwrap().unwrap().neighbour.mac,
        Some([2, 0, 0, 0, 0, 9])
    );
}

#[test]
fn the_interface_is_asked_for_when_events_were_lost() {
    let Some(network) = Network::new() else {
        return;
    };
    network.link_further("10.80.0");
    let (mut tables, _) = tables(&network.left);
    // Events of another interface fill the socket.
    let neighbours = (0..LOST).map(|number| format!("02:00:00:00:{:02x}:01", number % 200));
    for mac in neighbours {
        let replace = format!("neigh replace 10.80.0.9 lladdr {mac} dev link1");
        network.left.ip(&replace).unwrap();
    }
    for command in ["down", "address 02:00:00:00:00:56 mtu 1400", "up"] {
        network
            .left
            .ip(&format!("link set link0 {command}"))
            .unwrap();
    }
    // The kernel reports some consequences a second later, and those are lost too.
    std::thread::sleep(Duration::from_secs(2));
    let changes: Vec<_> = std::iter::from_fn(|| tables.change()).collect();
    assert!(changes.contains(&Change::Roads));
    let mut links = changes.iter().filter_map(|change| match change {
        Change::Link(link) => Some(link),
        _ => None,
    });
    let link = links.next_back().unwrap();
    assert_eq!(link.mac, Some([2, 0, 0, 0, 0, 0x56]));
    assert_eq!((link.mtu, link.is_up), (1400, true));
}

#[test]
fn a_missing_answer_after_lost_events_is_asked_for_again() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut tables, link) = tables(&network.left);
    tables.has_lost = true;
    let silence = io::ErrorKind::WouldBlock.into();
    for answer in [Err(silence), Ok(Message::Refused(libc::EPERM))] {
        assert!(!tables.note_answer(answer) && tables.has_lost);
    }
    assert!(tables.changes.is_empty());
    assert_eq!(tables.change(), Some(Change::Link(link)));
    assert_eq!(tables.change(), Some(Change::Roads));
    assert_eq!(tables.change(), None);
    network.left.ip("link del link0").unwrap();
    while tables.change().is_some() {}
    tables.has_lost = true;
    assert_eq!(tables.change(), Some(Change::LinkGone));
}

#[test]
fn the_limit_of_ipv6_follows_the_length_of_the_interface() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut tables, _) = tables(&network.left);
    for mtu in [1400, 1500] {
        network
            .left
            .ip(&format!("link set link0 mtu {mtu}"))
            .unwrap();
        let changes = std::iter::from_fn(|| tables.change());
        let last = changes.filter_map(|change| match change {
            Change::Link(link) => Some(link),
            _ => None,
        });
        let link = last.last().unwrap();
        assert_eq!((link.mtu_of(false), link.mtu_of(true)), (mtu, mtu));
        assert!(!tables.has_changed, "one question is enough");
    }
}

#[test]
fn a_port_that_leaves_its_bridge_is_not_gone() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut tables, _) = tables(&network.left);
    let ip = |command: &str| network.left.ip(&format!("link {command}")).unwrap();
    ip("add bridge0 type bridge");
    ip("set link0 master bridge0");
    ip("set link0 nomaster");
    ip("set link0 mtu 1400");
    let last = until(&mut tables, |change| match change {
        Change::Link(link) => link.mtu == 1400,
        change => *change == Change::LinkGone,
    });
    assert_ne!(last, Change::LinkGone);
}

#[test]
fn changes_are_reported() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut tables, link) = tables(&network.left);
    let right: IpAddr = network.right.address.parse().unwrap();
    set_neighbour(&network.left, network.right.address, "02:00:00:00:00:08");
    until(
        &mut tables,
        |change| matches!(change, Change::Neighbour(ip, it) if *ip == right && it.mac.is_some()),
    );
    let delete = format!("neigh del {} dev link0", network.right.address);
    network.left.ip(&delete).unwrap();
    until(
        &mut tables,
        |change| matches!(change, Change::Neighbour(ip, it) if *ip == right && it.mac.is_none()),
    );
    network.left.ip("link set link0 mtu 1300").unwrap();
    until(
        &mut tables,
        |change| matches!(change, Change::Link(it) if it.mtu == 1300),
    );
    network
        .left
        .ip("route add 10.200.0.0/16 dev link0")
        .unwrap();
    until(&mut tables, |change| *change == Change::Roads);
    network.left.ip("link set link0 down").unwrap();
    until(
        &mut tables,
        |change| matches!(change, Change::Link(it) if !it.is_up),
    );
    network
        .left
        .ip("link set link0 address 02:00:00:00:00:55")
        .unwrap();
    until(
        &mut tables,
        |change| matches!(change, Change::Link(it) if it.mac != link.mac && it.index == link.index),
    );
    network.left.ip("link del link0").unwrap();
    until(&mut tables, |change| *change == Change::LinkGone);
}
