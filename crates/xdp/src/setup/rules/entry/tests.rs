//! Commands have the kernel's layout, and are read as they were written.

use proptest::prelude::*;

use super::*;

/// Writes the place to a command, as a driver does.
pub(in crate::setup::rules) fn set_place(bytes: &mut [u8], place: u32) {
    put(bytes, PLACE, &place.to_ne_bytes());
}

/// Says that the further fields count, and gives one of them a value, as drivers do.
pub(in crate::setup::rules) fn set_further(bytes: &mut [u8]) {
    bytes[RULE + 3] |= 0x80;
    put(bytes, FURTHER + 4, &[1, 2]);
}

pub(in crate::setup::rules) fn set_count(bytes: &mut [u8], count: u32, data: u64) {
    put(bytes, RULES, &count.to_ne_bytes());
    put(bytes, DATA, &data.to_ne_bytes());
}

pub(in crate::setup::rules) fn set_places(bytes: &mut [u8], places: &[u32], size: u64) {
    set_count(bytes, u32::try_from(places.len()).unwrap(), size);
    for (at, place) in places.iter().enumerate() {
        put(bytes, PLACES + 4 * at, &place.to_ne_bytes());
    }
}

pub(in crate::setup::rules) fn set_queue(bytes: &mut [u8], queue: u64) {
    put(bytes, QUEUE, &queue.to_ne_bytes());
}

/// The rule of a command, as the driver keeps it.
pub(in crate::setup::rules) fn rule(bytes: &[u8]) -> &[u8] {
    &bytes[RULE..RULES]
}

pub(in crate::setup::rules) fn set_rule(bytes: &mut [u8], rule: &[u8]) {
    put(bytes, RULE, rule);
}

fn entries() -> impl Strategy<Value = FlowRule> {
    let parts = (any::<IpAddr>(), any::<u16>(), any::<[u32; 2]>());
    parts.prop_map(|(ip, port, [queue, place])| FlowRule {
        to: SocketAddr::new(ip, port),
        queue,
        place,
    })
}

proptest! {
    #[test]
    fn a_rule_is_read_as_it_was_written(entry in entries()) {
        let command = entry.to_command();
        prop_assert_eq!(command.len(), COMMAND);
        prop_assert_eq!(FlowRule::of(&command), Some(entry));
    }

    #[test]
    fn a_rule_with_another_bit_is_another_rule_or_none_of_ours(
        entry in entries(),
        at in RULE..RULES,
        bit in 0..8_u32,
    ) {
        let mut command = entry.to_command();
        command[at] ^= 1 << bit;
        // Some bytes belong to no field, or to one whose mask is zero.
        let is_further = (FURTHER..MASKS).contains(&at) || (RULE + 3, bit) == (at, 7);
        let is_part = !is_further && !(MASKS_END..QUEUE).contains(&at) && at < PLACE + 4;
        prop_assert!(!is_part || FlowRule::of(&command) != Some(entry));
    }

    #[test]
    fn any_answer_is_read(
        bytes in prop::collection::vec(any::<u8>(), COMMAND..COMMAND + 100),
    ) {
        FlowRule::of(&bytes);
        let (found, _) = places(&bytes);
        prop_assert!(found.len() <= (bytes.len() - PLACES) / 4);
    }
}

#[test]
fn further_fields_count_by_their_masks() {
    let entry = FlowRule {
        to: "10.1.2.3:31900".parse().unwrap(),
        queue: 5,
        place: 7,
    };
    let mut command = entry.to_command();
    set_further(&mut command);
    assert_eq!(FlowRule::of(&command), Some(entry));
    for at in MASKS_END - 20..MASKS_END {
        let mut masked = command.clone();
        masked[at] = 1;
        assert_eq!(FlowRule::of(&masked), None, "{at}");
    }
}

#[test]
fn the_layout_is_that_of_the_kernel() {
    let entry = FlowRule {
        to: "10.1.2.3:31900".parse().unwrap(),
        queue: 5,
        place: 7,
    };
    let mut wanted = vec![0; 192];
    // From a program of C that fills `struct ethtool_rxnfc`, on a little-endian machine.
    for (at, bytes) in [
        (0, &[0x32][..]),
        (16, &[2]),
        (24, &[10, 1, 2, 3]),
        (30, &[0x7c, 0x9c]),
        (96, &[255, 255, 255, 255]),
        (102, &[255, 255]),
        (168, &[5]),
        (176, &[7]),
    ] {
        put(&mut wanted, at, bytes);
    }
    assert_eq!(entry.to_command(), wanted);
    let entry = FlowRule {
        to: "[fd00::9]:1".parse().unwrap(),
        ..entry
    };
    let mut wanted = vec![0; 192];
    for (at, bytes) in [
        (0, &[0x32][..]),
        (16, &[6]),
        (36, &[0xfd]),
        (51, &[9]),
        (55, &[1]),
        (108, &[255; 16]),
        (126, &[255, 255]),
        (168, &[5]),
        (176, &[7]),
    ] {
        put(&mut wanted, at, bytes);
    }
    assert_eq!(entry.to_command(), wanted);
    let list = command(ALL, 3);
    assert_eq!((list.len(), list[0], list[184]), (200, 0x30, 3));
}
