//! The name of a link's end is parsed, and a child gets the end that its parent has passed.

use super::*;

#[test]
fn an_end_is_a_namespace_an_interface_and_an_address() {
    let end: EndName = "left/eth0/10.0.0.1".parse().unwrap();
    assert_eq!(end.namespace, "left");
    assert_eq!(end.interface, "eth0");
    assert_eq!(end.ip, IpAddr::from([10, 0, 0, 1]));
    for wrong in [
        "",
        "left",
        "left/eth0",
        "left/eth0/x",
        "/eth0/::1",
        "a/b/::1/c",
    ] {
        assert!(wrong.parse::<EndName>().is_err(), "{wrong}");
    }
    assert!("left/a-name-that-is-long/::1".parse::<EndName>().is_err());
}

#[test]
fn a_place_reaches_a_child_unchanged() {
    let file = File::open("/dev/null").unwrap();
    let place = LinkEnd {
        mode: Some(Mode::Native),
        ..LinkEnd::of(&file, "eth0", Ipv4Addr::LOCALHOST.into())
    };
    let text = serde_json::to_string(&place).unwrap();
    let read: LinkEnd = serde_json::from_str(&text).unwrap();
    assert_eq!(read, place);
    assert_eq!(read.interface(), "eth0");
    assert!(read.is_native());
}
