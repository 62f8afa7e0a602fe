//! The reading of releases and of capabilities, and the advice about kernels and interfaces.

use std::io;

use dunlin::transport::XdpMode;
use dunlin::transport::xdp_setup::{Features, Owner, State as Link};

use super::super::facts::State;
use super::{Interface, interface_of, kernel_of, locks_fill_ring, missing, version};

#[test]
fn a_kernel_without_the_sockets_has_a_fault_whatever_its_version() {
    assert_eq!(kernel_of("6.18.0", Ok(())).state, State::Good);
    assert_eq!(kernel_of("6.1.0", Ok(())).state, State::Improve);
    let sockets = || Err(io::Error::other("no sockets (CONFIG_XDP_SOCKETS)"));
    let fact = kernel_of("6.18.0", sockets());
    assert_eq!(fact.state, State::Missing);
    assert!(fact.advice.unwrap().contains("CONFIG_XDP_SOCKETS"));
}

/// An interface that endpoints can use.
fn usable() -> Interface {
    Interface {
        name: "eth7".to_owned(),
        carrier: "up".to_owned(),
        queues: 1,
        rules: "no rules".to_owned(),
        mtu: 1500,
        link: Some(Link {
            is_up: true,
            program: None,
            features: Some(Features {
                native: true,
                zero_copy: false,
            }),
        }),
    }
}

#[test]
fn each_fault_of_an_interface_has_a_command() {
    let fact = interface_of(&usable());
    assert_eq!((fact.state, fact.advice), (State::Good, None));
    assert_eq!(
        fact.value,
        "eth7: up, 1 queues, no rules, native mode, MTU 1500"
    );
    let with = |change: &dyn Fn(&mut Interface, &mut Link)| {
        let (mut it, mut link) = (usable(), usable().link.unwrap());
        change(&mut it, &mut link);
        it.link = Some(link);
        let fact = interface_of(&it);
        (fact.state, fact.advice.unwrap_or_default(), fact.value)
    };
    let (state, advice, _) = with(&|_, link| link.is_up = false);
    assert_eq!(state, State::Improve);
    assert!(advice.contains("`ip link set dev eth7 up`"), "{advice}");
    let (state, advice, _) = with(&|it, _| it.carrier = "lowerlayerdown".to_owned());
    assert_eq!(state, State::Improve);
    assert!(advice.contains("no carrier"), "{advice}");
    let (state, advice, value) = with(&|it, link| {
        link.program = Some(Owner::Other(Some(XdpMode::Generic)));
        it.queues = 8;
    });
    assert_eq!(state, State::Improve);
    assert!(value.contains("another XDP program"), "{value}");
    assert!(advice.contains("bpftool net list dev eth7"), "{advice}");
    assert!(advice.contains("dunlin xdp-setup"), "{advice}");
    assert!(advice.contains("dev eth7 xdpgeneric off"), "{advice}");
    assert!(advice.contains("xdp.queues=8"), "{advice}");
    let native = Some(Owner::Other(Some(XdpMode::Native)));
    let (_, advice, _) = with(&|_, link| link.program = native);
    assert!(advice.contains("dev eth7 xdpdrv off"), "{advice}");
    let (state, _, value) = with(&|_, link| link.program = Some(Owner::OfUser));
    assert_eq!(state, State::Good, "{value}");
    let (state, _, value) = with(&|_, link| link.features = None);
    assert_eq!(state, State::Good);
    assert!(value.contains("native mode unknown"), "{value}");
}

#[test]
fn a_release_has_two_numbers_in_front() {
    assert_eq!(version("6.18.44-custom"), Some((6, 18)));
    assert_eq!(version("5.4.0"), Some((5, 4)));
    assert_eq!(version("unknown"), None);
}

#[test]
fn a_fix_is_in_its_release_and_in_later_ones_of_its_series() {
    for release in [
        "6.6.123",
        "6.12.28+deb13",
        "6.12.107",
        "6.14.6",
        "6.15.0",
        "6.15",
        "7.0",
    ] {
        assert!(locks_fill_ring(release), "{release}");
    }
    for release in [
        "6.6.122",
        "6.6",
        "6.8.0-31-generic",
        "6.12.27",
        "6.13.9",
        "6.14.5",
        "5.15.200",
        "?",
    ] {
        assert!(!locks_fill_ring(release), "{release}");
    }
}

#[test]
fn the_capabilities_that_are_missing_are_named() {
    assert!(missing(u64::MAX).is_empty());
    assert_eq!(missing(0), ["cap_net_admin", "cap_net_raw", "cap_bpf"]);
    assert_eq!(missing(1 << 12), ["cap_net_raw", "cap_bpf"]);
    assert_eq!(missing(1 << 13), ["cap_net_admin", "cap_bpf"]);
    assert_eq!(missing(1 << 39), ["cap_net_admin", "cap_net_raw"]);
}
