//! Names of transports for peers of other hosts are read, or refused with the reason.

use std::io;

use dunlin_transport::auto::{Auto, OpenRemote, OpenedRemote, Options, RemoteOptions};
use dunlin_transport::udp;

use super::{Named, fault, read};
use crate::Settings;
use crate::apply::Configurable;

/// The transport that a program names.
#[derive(Debug)]
struct OfProgram;

impl OpenRemote for OfProgram {
    fn open(&self, _: udp::Options) -> io::Result<OpenedRemote> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

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

#[test]
fn a_name_replaces_the_transport_of_the_program_even_if_it_is_udp() {
    let of_program = RemoteOptions::new(OfProgram);
    let configured = |settings: &Settings| {
        let mut options = Options {
            remote: Some(of_program.clone()),
            ..Options::default()
        };
        <Auto>::configure(settings, &mut options);
        options.remote
    };
    let named = |name| configured(&Settings::default().with("auto.remote", name).unwrap());
    assert_eq!(named("udp"), None);
    assert!(named("xdp").is_some_and(|remote| remote != of_program));
    assert_eq!(configured(&Settings::default()), Some(of_program.clone()));
}

#[cfg(feature = "xdp")]
#[test]
fn options_of_xdp_that_are_not_set_keep_the_values_of_the_program() {
    let of_program = dunlin_xdp::Options {
        interface: "eth1".to_owned(),
        queue: 3,
        mode: dunlin_xdp::Mode::Native,
        setup: Some("/run/daemon".into()),
        ..dunlin_xdp::Options::default()
    };
    let mut options = of_program.clone();
    dunlin_xdp::Xdp::configure(&Settings::default(), &mut options);
    assert_eq!(options, of_program);
    let settings = Settings::default().with("xdp.queue", "5").unwrap();
    let settings = settings.with("xdp.setup", "none").unwrap();
    dunlin_xdp::Xdp::configure(&settings, &mut options);
    let changed = dunlin_xdp::Options {
        queue: 5,
        setup: None,
        ..of_program
    };
    assert_eq!(options, changed);
}

#[cfg(feature = "dpdk")]
#[test]
fn a_device_that_is_not_set_keeps_the_value_of_the_program() {
    let mut options = dunlin_dpdk::Options {
        device: "net_null0;ip=10.1.0.1/24".to_owned(),
        ..dunlin_dpdk::Options::default()
    };
    let of_program = options.clone();
    dunlin_dpdk::Dpdk::configure(&Settings::default(), &mut options);
    assert_eq!(options, of_program);
}
