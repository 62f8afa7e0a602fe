//! Leaders that hand over, and members that join and leave.

use super::*;

#[test]
fn a_leader_hands_over_by_order_and_at_its_end() {
    let mut cluster = Cluster::start(3);
    let old = cluster.leader();
    let addresses = cluster.addresses();
    let to = &addresses[(old + 1) % 3];
    let names: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let transfer = |more: &[&'static str]| {
        let order = &["transfer-leader", "--timeout", "30"][..];
        [order, more, &names].concat()
    };
    let to_other = [&transfer(&["--to"])[..4], &[to.as_str()], &names].concat();
    assert_eq!(text(&to_other), format!("{to} leads\n"));
    assert_eq!(cluster.leader(), (old + 1) % 3);
    assert_eq!(text(&to_other), format!("{to} leads already\n"));
    assert!(failure(&transfer(&["--to", "127.0.0.1:1"]), 1).contains("not one of the cluster's"));
    // At its end, a leader waits until another one leads.
    let last = (old + 1) % 3;
    let term = |address: &str| {
        let status = text(&["status", address, "--json", "--timeout", "30"]);
        let status: Value = serde_json::from_str(&status).unwrap();
        (status["role"] == "leader", status["term"].as_u64().unwrap())
    };
    let (_, before) = term(to);
    let id = cluster.0[last].child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    cluster.0[last].child.wait().unwrap();
    let others = [(last + 1) % 3, (last + 2) % 3];
    let states = others.map(|place| term(&addresses[place]));
    assert!(
        states.iter().any(|it| *it == (true, before + 1)),
        "{before}: {states:?}"
    );
}

#[test]
fn members_join_and_leave_and_the_new_ones_count() {
    let mut cluster = Cluster::start(3);
    let before = cluster.addresses().join(",");
    text(&[
        "put",
        "name",
        "dunlin",
        "--cluster",
        &before,
        "--timeout",
        "30",
    ]);
    cluster.0.push(Replica::start("127.0.0.1:0"));
    let other = Cluster::start(1);
    let addresses = cluster.addresses();
    let all: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let order = |what: &'static str, member: &str| {
        let mut args = vec![what, "--timeout", "30"];
        args.push(all[all.iter().position(|it| *it == member).unwrap()]);
        args.extend(&all);
        text(&args)
    };
    assert_eq!(order("join", all[3]), format!("{} votes\n", all[3]));
    assert_eq!(
        order("join", all[3]),
        format!("{} votes\n", all[3]),
        "again"
    );
    let stranger = [&["join", &other.0[0].address, "--timeout", "5"][..], &all].concat();
    assert!(failure(&stranger, 1).contains("another cluster"));
    // The leader leaves too, after another one leads.
    let old = cluster.leader();
    assert_eq!(order("leave", all[old]), format!("{} has left\n", all[old]));
    assert_eq!(
        order("leave", all[old]),
        format!("{} is not a member\n", all[old])
    );
    cluster.0[old].kill();
    // Of the three that are left, two are a majority, and the new one is among them.
    let gone = (0..3).find(|place| *place != old).unwrap();
    cluster.0[gone].kill();
    let rest: Vec<&str> = (0..4)
        .filter(|it| ![old, gone].contains(it))
        .map(|it| all[it])
        .collect();
    let rest = rest.join(",");
    let get = ["get", "name", "--cluster", &rest, "--timeout", "30"];
    assert_eq!(text(&get), "dunlin\n");
    text(&[
        "put",
        "name",
        "lough",
        "--cluster",
        &rest,
        "--timeout",
        "30",
    ]);
    assert_eq!(text(&get), "lough\n");
}
