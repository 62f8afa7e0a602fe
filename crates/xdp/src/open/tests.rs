//! Options that decide about each other.

use super::*;
use crate::roads::Attached;

#[test]
fn only_an_endpoint_that_copies_takes_packets_without_a_whole_sum() {
    for (partial_sums, zero_copy, takes) in [
        (true, false, true),
        (false, false, false),
        (true, true, false),
        (false, true, false),
    ] {
        let options = Options {
            partial_sums,
            zero_copy,
            ..Options::default()
        };
        assert_eq!(options.takes_partial_sums(), takes);
    }
}

#[test]
fn a_packet_has_no_more_data_than_the_interface_has_room_for() {
    let link = |mtu, mtu_6| Link {
        index: 3,
        mac: None,
        mtu,
        mtu_6,
        is_up: true,
        below: Below::Itself,
        program: Attached::Nothing,
    };
    let (v4, v6) = (
        [10, 0, 0, 1].into(),
        IpAddr::from([0xFD00, 0, 0, 0, 0, 0, 0, 1]),
    );
    for (link, ip, most) in [
        (link(1500, Some(1500)), v4, 1448),
        (link(1500, Some(1500)), v6, 1428),
        (link(1500, Some(1300)), v4, 1448),
        (link(1500, Some(1300)), v6, 1228),
        (link(9000, None), v6, 8928),
        (link(68, None), v4, MIN_DATA_SIZE),
    ] {
        assert_eq!(data_in(&link, ip), most, "{link:?}");
    }
}
