//! Counts that are read from a profile.

use super::sides;

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

#[test]
fn each_side_has_the_cost_of_all_calls_of_its_turns_and_of_no_other() {
    assert_eq!(sides(PROFILE).unwrap(), [[1100, 220, 330], [40, 0, 10]]);
}

#[test]
fn a_profile_that_lacks_something_is_refused() {
    for (part, why) in [
        ("server_turn", "server_turn"),
        (" Dw", "Dw"),
        ("events: ", "events"),
    ] {
        let error = sides(&PROFILE.replace(part, "x")).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
