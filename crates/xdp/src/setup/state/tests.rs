//! The kernel's answers about sockets, and the states of an interface. The latter need root.

use dunlin_testkit::network::Network;

use super::*;
use crate::steering::Steering;

#[test]
fn only_a_kernel_without_these_sockets_is_refused() {
    for code in [None, Some(libc::EPERM), Some(libc::EMFILE)] {
        assert!(check_answer(code).is_ok(), "{code:?}");
    }
    let missing = check_answer(Some(libc::EAFNOSUPPORT)).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::Unsupported);
    assert!(missing.to_string().contains("CONFIG_XDP_SOCKETS"));
}

#[test]
fn the_state_of_an_interface_shows_its_program_and_its_driver() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.left;
    let state = |name| host.run(|| state_of(name)).unwrap();
    check_kernel().unwrap();
    let veth = Features {
        native: true,
        zero_copy: false,
    };
    let free = State {
        is_up: true,
        program: None,
        features: Some(veth),
    };
    assert_eq!(state("link0"), free);
    host.ip("link set link0 down").unwrap();
    assert!(!state("link0").is_up);
    host.ip("link add bridge0 type bridge").unwrap();
    let features = state("bridge0").features.unwrap();
    assert!(!features.native && !features.zero_copy);
    // A program that no process offers.
    let steering = host.run(|| {
        let steering = Steering::load().unwrap();
        let index = ffi::interface_index(c"link0").unwrap();
        steering.attach(index, Mode::Generic).unwrap();
        steering
    });
    assert_eq!(
        state("link0").program,
        Some(Owner::Other(Some(Mode::Generic)))
    );
    drop(steering);
    assert!(host.run(|| state_of("lo")).is_err(), "it has no frames");
}
