//! The programs of `docs/configuration.md`. They read the environment, so a process of their own
//! runs them.

use dunlin::ReqType;
use dunlin_testkit::child::Child;

mod endpoint {
    include!(concat!(env!("OUT_DIR"), "/configuration_1.rs"));

    pub(super) fn connects() {
        let mut rpc = start().unwrap();
        let session = rpc.sessions().next().unwrap();
        rpc.run_until(|rpc| rpc.session_info(session).is_ok_and(|info| info.open));
    }
}

mod channel {
    include!(concat!(env!("OUT_DIR"), "/configuration_2.rs"));

    pub(super) fn asks() -> Vec<u8> {
        let channel = open().unwrap();
        crate::block_on(channel.call(super::ReqType(1), b""))
            .unwrap()
            .to_vec()
    }
}

/// Runs both programs with a server at this address.
pub(super) fn loaded(address: &str) {
    crate::place("10.0.0.7:31850", address);
    crate::place("users.example:31850", address);
    endpoint::connects();
    println!("#{}", String::from_utf8(channel::asks()).unwrap());
}

#[test]
fn programs_load_their_settings() {
    let (_running, address) = crate::named(ReqType(1));
    let role = format!("configuration {address}");
    let child = Child::start_with(&role, "DUNLIN_NEXUS_LISTEN", "127.0.0.1:0");
    assert_eq!(child.line(), "name");
    assert!(child.wait().success());
}
