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
fn routes_to_ourselves_are_no_roads() {
    let message = |kind: u8| {
        let mut message = begin(NEW_ROUTE, &[2, 32, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0]);
        attribute(&mut message, 4, &3_u32.to_ne_bytes());
        attribute(&mut message, 5, &[10, 0, 0, 1]);
        read(&end(message)).next()
    };
    let gateway = IpAddr::from([10, 0, 0, 1]);
    assert_eq!(message(1), Some(Message::Route(3, Some(gateway))));
    assert_eq!(message(2), Some(Message::OtherRoute));
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
