//! Texts that name a device, right and wrong ones.

use super::*;

#[test]
fn a_text_with_all_parts_is_read() {
    let text = "0000:01:00.0;ip=fd79::2/64,gw=fd79::1,vlan=5,mtu=9000,packets=4096;-m 64 -l 1";
    let site: Site = text.parse().unwrap();
    assert_eq!(site.device, "0000:01:00.0");
    assert_eq!((site.vlan, site.mtu, site.packets), (5, 9000, 4096));
    assert_eq!(site.gateway, Some("fd79::1".parse().unwrap()));
    assert_eq!(site.arguments, ["-m", "64", "-l", "1"]);
    assert!(site.is_on_link("fd79::ffff".parse().unwrap()));
    assert!(!site.is_on_link("fd79:0:0:1::1".parse().unwrap()));
    assert!(!site.is_on_link("10.0.0.1".parse().unwrap()));
}

#[test]
fn packets_for_other_networks_go_to_the_gateway() {
    let mut site: Site = "net_null0;ip=10.0.0.2/24,gw=10.0.0.1".parse().unwrap();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(site.hop(ip("10.0.0.2")), Some(Hop::Here));
    assert_eq!(
        site.hop(ip("10.0.0.9")),
        Some(Hop::Neighbour(ip("10.0.0.9")))
    );
    assert_eq!(
        site.hop(ip("10.0.1.9")),
        Some(Hop::Neighbour(ip("10.0.0.1")))
    );
    assert_eq!(site.hop(ip("127.0.0.1")), None);
    assert_eq!(site.hop(ip("fd79::1")), None);
    site.gateway = None;
    assert_eq!(site.hop(ip("10.0.1.9")), None);
}

#[test]
fn an_impossible_site_is_refused_with_the_reason() {
    for (text, part) in [
        ("", "the form is"),
        ("net_memif0", "the form is"),
        ("net_memif0;gw=10.0.0.1", "the form is"),
        (";ip=10.0.0.2/24", "the form is"),
        ("net_memif0;ip=10.0.0.2", "the form is"),
        ("net_memif0;ip=10.0.0/24", "ip=10.0.0:"),
        ("net_memif0;ip=10.0.0.2/33", "1 to 32 bits"),
        ("net_memif0;ip=127.0.0.1/8", "cannot have the address"),
        ("net_memif0;ip=10.0.0.2/24,gw=10.0.1.1", "not on the link"),
        ("net_memif0;ip=10.0.0.2/24,gw=10.0.0.2", "not on the link"),
        ("net_memif0;ip=10.0.0.2/24,vlan=4095", "4094"),
        ("net_memif0;ip=10.0.0.2/24,mtu=70000", "mtu=70000"),
        ("net_memif0;ip=10.0.0.2/24,mtu=500", "624 to 32700"),
        ("net_memif0;ip=10.0.0.2/24,mtu=40000", "624 to 32700"),
        ("bus=pci,addr=1:0.0;ip=10.0.0.2/24", "-a and --vdev"),
        ("net_memif0;ip=10.0.0.2/24,packets=1024", "4095"),
        ("net_memif0;ip=10.0.0.2/24,queues=0", "1 to 64 queues"),
        ("net_memif0;ip=10.0.0.2/24,queues=2,vlan=3", "tagged frames"),
        (
            "net_memif0;ip=10.0.0.2/24,colour=red",
            "`colour` is not one of",
        ),
    ] {
        let error = text.parse::<Site>().unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn the_default_pool_is_enough_for_11_endpoints_and_the_smallest_for_1() {
    let mut site: Site = "net_memif0;ip=10.0.0.2/24".parse().unwrap();
    for (packets, endpoints) in [(PACKETS, 11), (FEWEST, 1)] {
        site.packets = packets;
        assert_eq!(site.check_pool(1024, endpoints), Ok(()));
        let error = site.check_pool(1024, endpoints + 1).unwrap_err();
        assert!(error.contains("packets="), "{error}");
    }
}

#[test]
fn the_driver_of_af_xdp_copies_unless_the_operator_says_otherwise() {
    for (given, wanted) in [
        (
            "net_af_xdp0,iface=eth0",
            "net_af_xdp0,iface=eth0,force_copy=1",
        ),
        (
            "vdev:net_af_xdp0,iface=eth0",
            "vdev:net_af_xdp0,iface=eth0,force_copy=1",
        ),
        (
            "net_af_xdp0,force_copy=0,iface=eth0",
            "net_af_xdp0,force_copy=0,iface=eth0",
        ),
        (
            "net_memif0,socket=/run/net_af_xdp0",
            "net_memif0,socket=/run/net_af_xdp0",
        ),
        ("01:00.0", "01:00.0"),
    ] {
        assert_eq!(complete(given), wanted);
    }
}
