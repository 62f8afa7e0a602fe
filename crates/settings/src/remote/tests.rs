//! Names of transports for peers of other hosts are read, or refused with the reason.

use super::{Named, fault, read};
use crate::Settings;

#[test]
fn names_are_read_in_parts() {
    let xdp = |interface, queue| Ok(Named::Xdp { interface, queue });
    assert_eq!(read("xdp"), xdp(None, None));
    assert_eq!(read("xdp:eth0"), xdp(Some("eth0"), None));
    assert_eq!(read("xdp:eth0:4095"), xdp(Some("eth0"), Some(4095)));
    assert_eq!(read("dpdk"), Ok(Named::Dpdk(None)));
    let device = "net_memif0,role=server;ip=10.1.0.1/24";
    assert_eq!(
        read(&format!("dpdk:{device}")),
        Ok(Named::Dpdk(Some(device)))
    );
}

#[test]
fn other_names_are_refused_with_the_reason() {
    for (name, reason) in [
        ("shm", "neither udp"),
        ("xdp:", "lacks the name of an interface"),
        ("xdp::0", "lacks the name of an interface"),
        ("xdp:eth0:4096", "from 0 to 4095"),
        ("xdp:eth0:0:0", "from 0 to 4095"),
        ("dpdk:net_null0", "ip="),
    ] {
        let fault = fault(name).unwrap();
        assert!(fault.contains(reason), "{name}: {fault}");
        let refused = Settings::default().with("auto.remote", name).unwrap_err();
        assert!(refused.to_string().contains(reason), "{name}: {refused}");
    }
    assert_eq!(fault("xdp:eth0"), None);
}

#[test]
fn parts_that_a_name_lacks_come_from_the_options_of_the_transport() {
    let named = |name: &str| {
        let settings = Settings::default().with("xdp.interface", "eth1").unwrap();
        let settings = settings.with("xdp.queue", "3").unwrap();
        let settings = settings.with("xdp.endpoints", "7").unwrap();
        format!("{:?}", settings.remote(name).unwrap())
    };
    for (name, interface, queue) in [
        ("xdp", "eth1", 3),
        ("xdp:eth0", "eth0", 3),
        ("xdp:eth0:5", "eth0", 5),
    ] {
        let options = named(name);
        assert!(
            options.contains(&format!("interface: \"{interface}\"")),
            "{options}"
        );
        assert!(options.contains(&format!("queue: {queue}")), "{options}");
        assert!(options.contains("endpoints: 7"), "{options}");
    }
}
