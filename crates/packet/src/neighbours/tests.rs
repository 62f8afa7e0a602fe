//! Each answer fits its question, and changed frames are refused. The tests of `dunlin-dpdk` send
//! such frames to the kernel.

use super::*;
use crate::check::homes;

fn other(home: &Home) -> Home {
    Home {
        address: crate::check::peer_of(home),
        mac: [2, 0, 0, 0, 0, 2],
        ..*home
    }
}

#[test]
fn a_question_is_answered_and_the_answer_understood() {
    let mut room = [0xEE; MAX_MESSAGE];
    for home in homes() {
        let other = other(&home);
        let len = write_question(&home, other.address.ip(), None, &mut room);
        let (from, mac) = (home.address.ip(), home.mac);
        let question = Some(Message::Question { from, mac });
        assert_eq!(read(&room[..len], &other), question);
        assert_eq!(
            read(&room[..len], &home),
            None,
            "the question is not for the asker"
        );
        let at = Some(other.mac);
        let len = write_question(&home, other.address.ip(), at, &mut room);
        assert_eq!(read(&room[..len], &other), question);
        assert_eq!(room[..6], other.mac, "the answer goes to one neighbour");
        let len = write_answer(&other, from, mac, &mut room);
        let (of, mac) = (other.address.ip(), other.mac);
        let answer = Some(Message::Answer { of, mac });
        assert_eq!(read(&room[..len], &home), answer);
        for cut in 0..len.min(ETHERNET + ARP) {
            assert_eq!(read(&room[..cut], &home), None, "{cut} bytes");
        }
    }
}

#[test]
fn any_changed_bit_of_neighbour_discovery_is_refused() {
    let mut room = [0; MAX_MESSAGE];
    let home = homes()[2];
    let other = other(&home);
    let len = write_answer(&other, home.address.ip(), home.mac, &mut room);
    for bit in 8 * (ETHERNET + IPV6)..8 * len {
        let mut changed = room;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&changed[..len], &home), None, "bit {bit}");
    }
}

#[test]
fn forwarded_messages_and_those_for_others_are_refused() {
    let mut room = [0; MAX_MESSAGE];
    for home in homes() {
        let other = other(&home);
        let len = write_question(&home, other.address.ip(), None, &mut room);
        let moved = Home {
            address: "[fd79::3]:1".parse().unwrap(),
            ..other
        };
        assert_eq!(read(&room[..len], &moved), None);
        let tagged = Home {
            vlan: other.vlan + 1,
            ..other
        };
        assert_eq!(read(&room[..len], &tagged), None);
        if home.address.is_ipv6() {
            let hops = len - DISCOVERY - IPV6 + 7;
            room[hops] = 254;
            assert_eq!(
                read(&room[..len], &other),
                None,
                "a router forwarded the message"
            );
        }
    }
}

#[test]
fn options_without_a_length_end_the_reading() {
    assert_eq!(option_of(&[1, 0, 0, 0, 0, 0, 0, 0], 1), None);
    assert_eq!(option_of(&[14, 1, 0, 0, 0, 0, 0, 0], 1), Some(None));
    assert_eq!(option_of(&[1, 2, 0, 0, 0, 0, 0, 0], 1), None);
}

#[test]
fn a_neighbour_that_asks_for_its_own_address_announces_it() {
    let mut room = [0; MAX_MESSAGE];
    let home = homes()[0];
    let other = other(&home);
    let (of, mac) = (other.address.ip(), other.mac);
    let len = write_question(&other, of, None, &mut room);
    let announcement = Message::Announcement { of, mac };
    assert_eq!(read(&room[..len], &home), Some(announcement));
}

#[test]
fn a_sender_without_an_address_gets_an_answer_to_all_nodes() {
    let mut room = [0; MAX_MESSAGE];
    for home in homes() {
        let ip: IpAddr = match home.address.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut looking = other(&home);
        looking.address.set_ip(ip);
        let len = write_question(&looking, home.address.ip(), None, &mut room);
        let mac = looking.mac;
        let question = Message::Question { from: ip, mac };
        assert_eq!(read(&room[..len], &home), Some(question));
        crate::check::frame(&room[..len]);
    }
}
