//! Counts that are read from a profile.

use super::{Counted, Without, sides};

const PROFILE: &str = "\
events: Ir Dr Dw I1mr D1mr
fn=(3) shm_rpc::counted
0 12 3 1
cfn=(8) shm_rpc::client_turn
calls=1 +18
* 100 30 20 7 7
cfi=(4)
cfn=(9) outside::shm_rpc::server_turn::<Ticks>
calls=2 +20
+4 40 10
cfn=(8)
calls=63 4
-2 1000 300 200

fn=(8)
4 50 5 5
cfn=(11) run_once
calls=64 9
4 900 1 1
";

const TURNS: Counted = Counted {
    sides: ["::client_turn", "::server_turn"],
    client_alone: false,
    without: None,
};

#[test]
fn each_side_has_the_cost_of_all_calls_in_its_turns_and_of_no_other_call() {
    assert_eq!(
        sides(PROFILE, TURNS).unwrap(),
        [[1100, 220, 330], [40, 0, 10]]
    );
}

#[test]
fn a_profile_that_lacks_something_is_refused() {
    for (part, why) in [
        ("server_turn", "server_turn"),
        (" Dw", "Dw"),
        ("events: ", "events"),
    ] {
        let error = sides(&PROFILE.replace(part, "x"), TURNS)
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn only_the_server_may_be_missing_and_only_where_it_is_allowed() {
    let alone = Counted {
        client_alone: true,
        ..TURNS
    };
    let without = |side: &str| sides(&PROFILE.replace(side, "x"), alone);
    assert_eq!(without("server_turn").unwrap()[1], [0; 3]);
    assert!(without("client_turn").is_err());
}

/// A call from each side, with 40 and 30 instructions in the driver.
const WITH_DRIVER: &str = "\
events: Ir Dr Dw
ob=(1) /program
fn=(1) rpc::counted
cfn=(2) <Client as rpc::Turn>::transport
calls=1 +18
* 100 10 10
cfn=(3) <Server as rpc::Turn>::transport
calls=1 +18
* 200 20 20

fn=(2)
4 50 5 5
cob=(2) /library
cfn=(4) receive'<Client as rpc::Turn>::transport
calls=1 0
* 50 5 5

ob=(2)
fn=(4)
1 10 1 1
cob=(3) /driver.so.23
cfn=(5) 0x1234
calls=1 0
* 40 4 4
cfn=(6) other
calls=1 0
* 3 1 1

fn=(7) receive'<Server as rpc::Turn>::transport
cob=(3)
cfn=(5)
calls=1 0
* 30 3 3
";

#[test]
fn calls_into_the_driver_count_for_neither_side() {
    let without = Without {
        callers: "receive*",
        object: "driver",
    };
    let counted = Counted {
        sides: ["Client as rpc::Turn", "Server as rpc::Turn"],
        client_alone: false,
        without: Some(without),
    };
    let found = sides(WITH_DRIVER, counted).unwrap();
    assert_eq!(found, [[60, 6, 6], [170, 17, 17]]);
    let elsewhere = WITH_DRIVER.replace("/driver", "/elsewhere");
    let error = sides(&elsewhere, counted).unwrap_err().to_string();
    assert!(error.contains("driver"), "{error}");
}
