//! Ways over tables that a test changes instead of the kernel.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use crate::roads::{Attached, Below};
use dunlin_packet::{MAX_HEADER, Sum};

const MAC: Mac = [2, 0, 0, 0, 0, 7];

/// Tables that the test changes.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    roads: HashMap<IpAddr, Road>,
    changes: VecDeque<Change>,
    /// Questions for the longest packets of paths.
    questions: u32,
    /// Questions for roads that get an answer before the others get none; `None`: all of them.
    answers: Option<u32>,
    /// The peers whose roads never get an answer.
    silent: Vec<IpAddr>,
}

impl Told {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, to: [u8; 4], road: Option<Road>) {
        match road {
            Some(road) => self.facts().roads.insert(to.into(), road),
            None => self.facts().roads.remove(&IpAddr::from(to)),
        };
    }

    fn change(&self, change: Change) {
        self.facts().changes.push_back(change);
    }
}

impl Roads for Told {
    fn road(&mut self, to: IpAddr) -> io::Result<Option<Road>> {
        let mut facts = self.facts();
        if let Some(left) = &mut facts.answers {
            let next = left.checked_sub(1);
            *left = next.ok_or(io::ErrorKind::OutOfMemory)?;
        }
        if facts.silent.contains(&to) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(facts.roads.get(&to).copied())
    }

    fn mtu(&mut self, to: IpAddr) -> io::Result<Option<u32>> {
        self.facts().questions += 1;
        let road = self.road(to)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(road.mtu)
    }

    fn change(&mut self) -> Option<Change> {
        self.facts().changes.pop_front()
    }
}

fn link(is_up: bool, mtu: u32) -> Link {
    Link {
        index: 3,
        mac: Some([2, 0, 0, 0, 0, 1]),
        mtu,
        mtu_6: None,
        is_up,
        below: Below::Itself,
        program: Attached::Nothing,
    }
}

fn neighbour(mac: Option<Mac>, is_idle: bool) -> Neighbour {
    Neighbour { mac, is_idle }
}

fn via(hop: [u8; 4], mac: Option<Mac>) -> Option<Road> {
    Some(Road {
        hop: hop.into(),
        neighbour: neighbour(mac, false),
        mtu: None,
    })
}

fn ways() -> (Ways, Told) {
    ways_of("10.0.0.1:70")
}

/// The ways from an address.
fn ways_of(address: &str) -> (Ways, Told) {
    let told = Told::default();
    let home = Home {
        address: address.parse().unwrap(),
        vlan: 0,
        mac: [2, 0, 0, 0, 0, 1],
    };
    let mac = OwnMac::new(home.mac);
    (
        Ways::new(home, mac, &link(true, 1500), Box::new(told.clone())),
        told,
    )
}

fn reach(address: [u8; 4], place: usize) -> Reach {
    Reach {
        address: (address, 80).into(),
        datagram: 1472,
        packet: 60_000,
        pack: true,
        place,
    }
}

/// The Ethernet addresses with which packets to a peer leave: theirs and ours.
fn macs(ways: &mut Ways, peer: PeerId) -> Option<(Mac, Mac)> {
    let form = ways.take(peer).ok()?;
    let mut bytes = [0; MAX_HEADER];
    form.header.write(&mut bytes, 1, Sum::default());
    Some((
        *bytes.first_chunk().unwrap(),
        *bytes[6..].first_chunk().unwrap(),
    ))
}

fn fall(ways: &mut Ways, peer: u32) -> Option<Fall> {
    ways.take(PeerId(peer)).err()
}

#[test]
fn a_peer_is_reached_as_soon_as_its_neighbour_is_known() {
    let (mut ways, told) = ways();
    let peer = PeerId(0);
    assert_eq!(fall(&mut ways, 0), Some(Fall::NoRoad), "there is no peer");
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], None));
    ways.add(peer, reach([10, 0, 0, 9], 0));
    assert_eq!(fall(&mut ways, 0), Some(Fall::NoNeighbour));
    told.change(Change::Neighbour(
        [10, 0, 0, 9].into(),
        neighbour(Some(MAC), false),
    ));
    ways.look();
    assert_eq!(macs(&mut ways, peer), Some((MAC, [2, 0, 0, 0, 0, 1])));
    assert_eq!(
        fall(&mut ways, 1 << 20),
        Some(Fall::NoRoad),
        "an id of an earlier peer in that place"
    );
    told.change(Change::Neighbour(
        [10, 0, 0, 9].into(),
        neighbour(None, false),
    ));
    ways.look();
    assert_eq!(fall(&mut ways, 0), Some(Fall::NoNeighbour));
    ways.remove(PeerId(1 << 20));
    assert_eq!(
        fall(&mut ways, 0),
        Some(Fall::NoNeighbour),
        "another peer was removed"
    );
    ways.remove(peer);
    assert_eq!(fall(&mut ways, 0), Some(Fall::NoRoad));
}

#[test]
fn peers_after_one_gateway_follow_it_together() {
    let (mut ways, told) = ways();
    let gateway = [10, 0, 0, 254];
    for peer in 0..3 {
        let address = [10, 9, 0, peer];
        told.tell(address, via(gateway, None));
        ways.add(PeerId(peer.into()), reach(address, peer.into()));
    }
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], None));
    ways.add(PeerId(3), reach([10, 0, 0, 9], 3));
    told.change(Change::Neighbour(
        gateway.into(),
        neighbour(Some(MAC), false),
    ));
    ways.look();
    let known = (0..4).map(|peer| macs(&mut ways, PeerId(peer)).is_some());
    assert!(known.eq([true, true, true, false]));
    // The route to the first peer no longer leads over the interface.
    told.tell([10, 9, 0, 0], None);
    told.change(Change::Roads);
    ways.look();
    assert_eq!(fall(&mut ways, 0), Some(Fall::NoRoad));
}

#[test]
fn a_road_stays_until_the_kernel_answers_again() {
    let (mut ways, told) = ways();
    let own = [2, 0, 0, 0, 0, 1];
    let other = [2, 0, 0, 0, 0, 8];
    for peer in 0..3 {
        let address = [10, 0, 0, 9 + peer];
        told.tell(address, via(address, Some(MAC)));
        ways.add(PeerId(peer.into()), reach(address, peer.into()));
        told.tell(address, via(address, Some(other)));
    }
    let found = |ways: &mut Ways| [0, 1, 2].map(|peer| macs(ways, PeerId(peer)).unwrap().0);
    told.facts().answers = Some(1);
    told.change(Change::Roads);
    ways.look();
    assert_eq!(found(&mut ways), [other, MAC, MAC], "the old roads stay");
    // Each look asks again, up to a question without an answer, and only for what is unanswered.
    // It begins after the last such question, which was about the second peer.
    told.facts().answers = Some(1);
    ways.look();
    assert_eq!(found(&mut ways), [other, MAC, other]);
    told.facts().answers = None;
    ways.look();
    assert_eq!(found(&mut ways), [other; 3]);
    assert_eq!(macs(&mut ways, PeerId(1)), Some((other, own)));
    told.facts().answers = Some(5);
    ways.look();
    assert_eq!(told.facts().answers, Some(5), "nothing is left to ask");
}

#[test]
fn roads_without_answers_do_not_keep_others_from_theirs() {
    for silent in [&[0_u8][..], &[3], &[1, 2], &[0, 3]] {
        let (mut ways, told) = ways();
        told.facts().answers = Some(0);
        for peer in 0..4 {
            let address = [10, 0, 0, peer];
            told.tell(address, via(address, Some(MAC)));
            ways.add(PeerId(peer.into()), reach(address, peer.into()));
        }
        let addresses = silent.iter().map(|peer| [10, 0, 0, *peer].into());
        told.facts().silent = addresses.collect();
        told.facts().answers = None;
        (0..4).for_each(|_| ways.look());
        for peer in 0..4 {
            let is_known = macs(&mut ways, PeerId(peer.into())).is_some();
            assert_eq!(is_known, !silent.contains(&peer), "{peer} of {silent:?}");
        }
        told.facts().silent.clear();
        ways.look();
        assert!((0..4).all(|peer| macs(&mut ways, PeerId(peer)).is_some()));
        assert!(!ways.is_unanswered, "nothing is left to ask");
    }
}

#[test]
fn a_peer_whose_road_had_no_answer_is_reached_later() {
    let (mut ways, told) = ways();
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], Some(MAC)));
    told.facts().answers = Some(0);
    ways.add(PeerId(0), reach([10, 0, 0, 9], 0));
    assert_eq!(fall(&mut ways, 0), Some(Fall::NoRoad));
    told.facts().answers = None;
    ways.look();
    assert!(macs(&mut ways, PeerId(0)).is_some());
}

#[test]
fn a_limit_of_ipv6_holds_only_for_its_packets() {
    for (address, longest) in [("[fd00::1]:70", 1300 - 48), ("10.0.0.1:70", 1472)] {
        let (mut ways, told) = ways_of(address);
        let narrow = Link {
            mtu_6: Some(1300),
            ..link(true, 1500)
        };
        told.change(Change::Link(narrow));
        ways.look();
        assert_eq!(ways.longest, longest, "{address}");
        // The interface may permit less than IPv6 does.
        let narrower = Link {
            mtu: 1280,
            ..narrow
        };
        told.change(Change::Link(narrower));
        ways.look();
        assert!(ways.longest < 1300 - 28, "{address}");
    }
}

#[test]
fn one_packet_confirms_an_idle_neighbour() {
    let (mut ways, told) = ways();
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], None));
    ways.add(PeerId(0), reach([10, 0, 0, 9], 0));
    told.change(Change::Neighbour(
        [10, 0, 0, 9].into(),
        neighbour(Some(MAC), true),
    ));
    ways.look();
    assert!(ways.ready(PeerId(0)).is_none(), "a look changes nothing");
    assert_eq!(fall(&mut ways, 0), Some(Fall::Confirm));
    assert!(macs(&mut ways, PeerId(0)).is_some());
    assert!(ways.ready(PeerId(0)).is_some());
    // A new length is no reason to confirm the neighbour again.
    told.change(Change::Link(link(true, 1400)));
    ways.look();
    assert!(ways.ready(PeerId(0)).is_some());
    told.change(Change::Link(link(false, 1400)));
    ways.look();
    assert!(ways.ready(PeerId(0)).is_none(), "the interface is down");
}

#[test]
fn only_packets_that_share_no_datagram_leave_alone() {
    let (mut ways, told) = ways();
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], Some(MAC)));
    let alone = Reach {
        pack: false,
        ..reach([10, 0, 0, 9], 1)
    };
    ways.add(PeerId(0), reach([10, 0, 0, 9], 0));
    ways.add(PeerId(1), alone);
    let short = |ways: &mut Ways, peer| ways.ready(PeerId(peer)).map(|form| form.short);
    assert_eq!(short(&mut ways, 0), Some(0));
    assert_eq!(short(&mut ways, 1), Some(MAX_INLINE));
    told.change(Change::Link(link(true, 68)));
    ways.look();
    assert_eq!(
        short(&mut ways, 1),
        Some(40),
        "the interface has no room for more"
    );
}

/// A road over a gateway with this limit.
fn limited(mtu: Option<u32>) -> Option<Road> {
    via([10, 0, 0, 254], Some(MAC)).map(|road| Road { mtu, ..road })
}

#[test]
fn the_path_to_a_peer_limits_its_packets() {
    let (mut ways, told) = ways();
    told.tell([10, 9, 0, 1], limited(Some(1300)));
    ways.add(PeerId(0), reach([10, 9, 0, 1], 0));
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], Some(MAC)));
    ways.add(PeerId(1), reach([10, 0, 0, 9], 1));
    let sizes = |ways: &mut Ways, peer| {
        ways.take(PeerId(peer))
            .map(|form| (form.datagram, form.longest))
    };
    assert_eq!(sizes(&mut ways, 0), Ok((1272, 1272)));
    assert_eq!(sizes(&mut ways, 1), Ok((1472, 1472)));
    // The interface permits more or less, and the neighbour changes.
    for (mtu, longest) in [(9000, 1272), (1200, 1172), (1500, 1272)] {
        told.change(Change::Link(link(true, mtu)));
        ways.look();
        assert_eq!(sizes(&mut ways, 0).unwrap().1, longest);
    }
    let gateway = [10, 0, 0, 254].into();
    told.change(Change::Neighbour(gateway, neighbour(Some(MAC), false)));
    ways.look();
    assert_eq!(sizes(&mut ways, 0), Ok((1272, 1272)));
    told.tell([10, 9, 0, 1], limited(Some(20)));
    told.change(Change::Roads);
    ways.look();
    assert_eq!(sizes(&mut ways, 0), Ok((0, 0)), "no payload fits");
}

#[test]
fn a_path_that_becomes_narrower_without_an_event_is_noticed() {
    let (mut ways, told) = ways();
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], Some(MAC)));
    ways.add(PeerId(0), reach([10, 0, 0, 9], 0));
    let look = |ways: &mut Ways| (0..LOOKS).for_each(|_| ways.look());
    look(&mut ways);
    assert_eq!(told.facts().questions, 0, "its path is the link");
    for peer in [5, 900] {
        let address = [10, 9, 0, u8::try_from(peer % 256).unwrap()];
        told.tell(address, limited(None));
        ways.add(PeerId(peer), reach(address, peer as usize));
        told.tell(address, limited(Some(1300)));
        let longest = |ways: &mut Ways| ways.take(PeerId(peer)).unwrap().longest;
        assert_eq!(longest(&mut ways), 1472);
        let looks = (0..100).find(|_| {
            look(&mut ways);
            longest(&mut ways) == 1272
        });
        assert!(looks.unwrap() <= 1 + 900 / PLACES, "{looks:?}");
        // A question without an answer changes nothing.
        told.tell(address, None);
        (0..=900 / PLACES + 2).for_each(|_| look(&mut ways));
        assert_eq!(longest(&mut ways), 1272);
        // The kernel forgets the limit after some time.
        told.tell(address, limited(None));
        (0..=900 / PLACES + 2).for_each(|_| look(&mut ways));
        assert_eq!(longest(&mut ways), 1472);
    }
}

#[test]
fn addresses_of_groups_are_not_used() {
    let (mut ways, told) = ways();
    for mac in [[0xFF; 6], [1, 0, 0x5E, 0, 0, 1], [0; 6]] {
        told.tell([10, 0, 0, 9], via([10, 0, 0, 9], Some(mac)));
        ways.add(PeerId(0), reach([10, 0, 0, 9], 0));
        assert_eq!(fall(&mut ways, 0), Some(Fall::NoNeighbour), "{mac:?}");
        ways.remove(PeerId(0));
    }
}

#[test]
fn the_interface_decides_lengths_and_our_address() {
    let (mut ways, told) = ways();
    told.tell([10, 0, 0, 9], via([10, 0, 0, 9], Some(MAC)));
    ways.add(PeerId(0), reach([10, 0, 0, 9], 0));
    let sizes = |ways: &mut Ways| {
        ways.take(PeerId(0))
            .map(|form| (form.datagram, form.longest))
    };
    assert_eq!(sizes(&mut ways), Ok((1472, 1472)));
    for (mtu, datagram, longest) in [
        (1300, 1272, 1272),
        (9000, 1472, 8972),
        (65_535, 1472, 16_000),
    ] {
        told.change(Change::Link(link(true, mtu)));
        ways.look();
        assert_eq!(sizes(&mut ways), Ok((datagram, longest)));
    }
    told.change(Change::Link(link(false, 1500)));
    ways.look();
    assert_eq!(fall(&mut ways, 0), Some(Fall::Down));
    let moved = Link {
        mac: Some([2, 0, 0, 0, 0, 0x55]),
        ..link(true, 1500)
    };
    told.change(Change::Link(moved));
    ways.look();
    assert_eq!(
        macs(&mut ways, PeerId(0)),
        Some((MAC, [2, 0, 0, 0, 0, 0x55]))
    );
    assert_eq!(ways.mac.get(), [2, 0, 0, 0, 0, 0x55]);
    ways.on_down();
    assert_eq!(fall(&mut ways, 0), Some(Fall::Down));
    told.change(Change::LinkGone);
    ways.look();
    assert_eq!(fall(&mut ways, 0), Some(Fall::Down));
}
