//! Every packet that has left was either lent or copied for one cause.

use super::*;

fn counts(copies: &Copies, sent: u64) -> Vec<(&'static str, u64)> {
    let mut counts = Vec::new();
    copies.show(sent, &mut |name, count| counts.push((name, count)));
    counts.retain(|(_, count)| *count > 0);
    counts
}

#[test]
fn packets_copied_for_no_cause_of_their_own_have_the_cause_of_the_endpoint() {
    for (other, name) in [
        (Other::Off, "tx_copied_off"),
        (Other::Device, "tx_copied_device"),
        (Other::Short, "tx_copied_short"),
    ] {
        assert_eq!(counts(&Copies::new(other), 7), [(name, 7)]);
    }
    let mut copies = Copies::new(Other::Short);
    copies.on_lent(3);
    for (why, times) in [
        (Cause::NoNeighbour, 1),
        (Cause::Memory, 2),
        (Cause::Limit, 4),
    ] {
        (0..times).for_each(|_| copies.on_copied(why));
    }
    let wanted = [
        ("tx_copied_short", 10),
        ("tx_copied_no_neighbour", 1),
        ("tx_copied_memory", 2),
        ("tx_copied_limit", 4),
    ];
    assert_eq!(counts(&copies, 20), wanted);
    // The neighbour never answered, so the last packet has not left.
    assert_eq!(counts(&copies, 9), wanted[1..]);
}
