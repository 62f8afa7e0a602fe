//! Messages as the kernel writes them, cut anywhere, and any bytes.

use proptest::prelude::*;

use super::*;

const MAC: Mac = [2, 3, 4, 5, 6, 7];

/// The messages that the kernel would send for a neighbour in some state.
fn about_neighbour(kind: u16, state: u16) -> Vec<u8> {
    let [a, b] = state.to_ne_bytes();
    let mut message = begin(kind, &[2, 0, 0, 0, 7, 0, 0, 0, a, b, 0, 0]);
    attribute(&mut message, 1, &[10, 0, 0, 9]);
    attribute(&mut message, 2, &MAC);
    end(message)
}

fn neighbour_in(kind: u16, state: u16) -> Neighbour {
    let found: Vec<_> = read(&about_neighbour(kind, state)).collect();
    let [Message::Neighbour(7, ip, neighbour)] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(ip, IpAddr::from([10, 0, 0, 9]));
    neighbour
}

#[test]
fn a_neighbour_has_an_address_while_the_kernel_would_use_it() {
    for (state, usable, idle) in [
        (0x01, false, false),
        (0x02, true, false),
        (0x04, true, true),
        (0x08, true, false),
        (0x10, true, false),
        (0x20, false, false),
        (0x40, true, false),
        (0x80, true, false),
        (0x00, false, false),
    ] {
        let found = neighbour_in(NEW_NEIGHBOUR, state);
        assert_eq!(found.mac, usable.then_some(MAC), "state {state:#x}");
        assert_eq!(found.is_idle, idle, "state {state:#x}");
        assert_eq!(neighbour_in(DELETE_NEIGHBOUR, state).mac, None);
    }
}

#[test]
fn several_messages_are_read_and_strange_ones_left_out() {
    let messages = [
        about_neighbour(NEW_NEIGHBOUR, 2),
        end(begin(99, &[1, 2, 3, 4])),
        end(begin(ERROR, &[0; 4])),
        about_neighbour(NEW_NEIGHBOUR, 1),
    ];
    assert_eq!(read(&messages.concat()).count(), 3);
}

#[test]
fn a_refusal_for_want_of_memory_is_no_answer() {
    let answer_with = |reason: i32| {
        let mut body = reason.wrapping_neg().to_ne_bytes().to_vec();
        body.extend([0; HEADER]);
        answer(&end(begin(ERROR, &body)))
    };
    for reason in [libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN, libc::EINTR] {
        let error = answer_with(reason).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(reason));
    }
    for reason in [libc::ENODEV, libc::ENOENT, libc::ENETUNREACH] {
        assert_eq!(answer_with(reason).unwrap(), Message::Refused(reason));
    }
    assert!(answer_with(i32::MIN).is_err(), "no reason has this number");
    let cut = end(begin(ERROR, &[0; 3]));
    assert_eq!(answer(&cut).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn routes_to_ourselves_are_no_roads() {
    let message = |kind: u8| {
        let mut message = begin(NEW_ROUTE, &[2, 32, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0]);
        attribute(&mut message, 4, &3_u32.to_ne_bytes());
        attribute(&mut message, 5, &[10, 0, 0, 1]);
        read(&end(message)).next()
    };
    let gateway = IpAddr::from([10, 0, 0, 1]);
    let route = Route {
        index: 3,
        gateway: Some(gateway),
        mtu: None,
    };
    assert_eq!(message(1), Some(Message::Route(route)));
    assert_eq!(message(2), Some(Message::OtherRoute));
}

#[test]
fn a_program_has_a_number_and_a_mode_unless_there_are_several() {
    let program = |attached: u8, number: Option<u32>| {
        let mut details = Vec::new();
        attribute(&mut details, 2, &[attached]);
        if let Some(number) = number {
            attribute(&mut details, 4, &number.to_ne_bytes());
        }
        program_of(&details)
    };
    assert_eq!(program(0, None), Attached::Nothing);
    assert_eq!(program(0, Some(0)), Attached::Nothing);
    let of = |mode| Attached::Program(7, mode);
    assert_eq!(program(1, Some(7)), of(Some(Mode::Native)));
    assert_eq!(program(2, Some(7)), of(Some(Mode::Generic)));
    assert_eq!(program(3, Some(7)), of(None));
    assert_eq!(program(4, None), Attached::Several);
}

#[test]
fn the_limit_of_ipv6_comes_with_an_interface_and_with_an_advertisement() {
    let read_link = |family: u8, kind: u16, facts: &[u8]| {
        let mut body = [0; 16];
        body[0] = family;
        body[2..4].copy_from_slice(&ETHERNET.to_ne_bytes());
        let mut message = begin(NEW_LINK, &body);
        attribute(&mut message, 4, &1500_u32.to_ne_bytes());
        attribute(&mut message, kind, facts);
        match read(&end(message)).next() {
            Some(Message::Link(link)) => link,
            other => panic!("{other:?}"),
        }
    };
    let numbers: Vec<u8> = [0_u32, 64, 1300, 1]
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    let mut of_inet_6 = Vec::new();
    attribute(&mut of_inet_6, 1, &[0; 4]);
    attribute(&mut of_inet_6, 2, &numbers);
    let mut families = Vec::new();
    attribute(&mut families, 2, &[0; 8]);
    attribute(&mut families, 10, &of_inet_6);
    for link in [read_link(0, 26, &families), read_link(10, 12, &of_inet_6)] {
        assert_eq!(link.mtu_6, Some(1300));
        assert_eq!((link.mtu_of(true), link.mtu_of(false)), (1300, 1500));
    }
    // A bridge describes its ports in the same attribute, and an interface may lack IPv6.
    assert_eq!(read_link(0, 12, &of_inet_6).mtu_6, None);
    let mut of_ipv4 = Vec::new();
    attribute(&mut of_ipv4, 2, &[0; 8]);
    assert_eq!(read_link(0, 26, &of_ipv4).mtu_of(true), 1500);
    let mut short = Vec::new();
    attribute(&mut short, 2, &numbers[..11]);
    assert_eq!(read_link(10, 12, &short).mtu_6, None);
}

#[test]
fn messages_of_a_bridge_about_its_port_are_left_out() {
    let count = |kind: u16, family: u8| {
        let mut body = [0; 16];
        body[0] = family;
        read(&end(begin(kind, &body))).count()
    };
    for kind in [NEW_LINK, DELETE_LINK] {
        for (family, expected) in [(0, 1), (INET_6, 1), (7, 0)] {
            assert_eq!(count(kind, family), expected, "{kind} of family {family}");
        }
    }
}

/// The kernel's description of an interface on top of interface 3, with these details, and with one
/// more attribute.
fn above(kind: &[u8], data: &[(u16, &[u8])], more: Option<(u16, &[u8])>) -> Below {
    let mut details = Vec::new();
    attribute(&mut details, 1, kind);
    let mut inner = Vec::new();
    for (kind, value) in data {
        attribute(&mut inner, *kind, value);
    }
    attribute(&mut details, 2, &inner);
    let mut body = [0; 16];
    body[2..4].copy_from_slice(&ETHERNET.to_ne_bytes());
    body[4..8].copy_from_slice(&9_u32.to_ne_bytes());
    let mut message = begin(NEW_LINK, &body);
    attribute(&mut message, 1, &MAC);
    attribute(&mut message, 5, &3_u32.to_ne_bytes());
    if let Some((kind, value)) = more {
        attribute(&mut message, kind, value);
    }
    attribute(&mut message, 18, &details);
    match read(&end(message)).next() {
        Some(Message::Link(link)) => link.below,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_interface_below_a_vlan_is_known() {
    let number: (u16, &[u8]) = (1, &5_u16.to_ne_bytes());
    let below = Below::Vlan {
        index: 3,
        number: 5,
    };
    assert_eq!(above(b"vlan\0", &[number], None), below);
    assert_eq!(above(b"vlan\0", &[number, (5, &[0x81, 0])], None), below);
    // Tags of 802.1ad, no number, and an interface below that is in another namespace.
    let strange = [number, (5, &[0x88, 0xA8][..])];
    assert_eq!(above(b"vlan\0", &strange, None), Below::Elsewhere);
    assert_eq!(above(b"vlan\0", &[], None), Below::Elsewhere);
    let away: (u16, &[u8]) = (37, &[0; 4]);
    assert_eq!(above(b"vlan\0", &[number], Some(away)), Below::Elsewhere);
    // Other kinds are devices of their own.
    assert_eq!(above(b"veth\0", &[], Some(away)), Below::Itself);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        kind in 14_u16..32,
        cut in 0_usize..300,
    ) {
        read(&bytes).for_each(drop);
        // The same bytes after a good header.
        let message = end(begin(kind, &bytes));
        read(&message[..message.len().min(cut)]).for_each(drop);
        read(&message).for_each(drop);
    }
}
