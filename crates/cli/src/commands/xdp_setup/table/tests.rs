//! Tables that are read, and tables that are refused.

use super::*;

const GOOD: &str = "\
[[grant]]
user = 1000
interface = \"eth0\"
addresses = [\"10.0.0.1\", \"fd00::1\"]
ports = \"31900-31999\"
queues = \"2\"

[[grant]]
user = 1001
interface = \"eth1\"
vlan = 5
mode = \"native\"
addresses = [\"10.0.0.1\"]
ports = \"7\"
queues = \"0 - 3\"
umem_mib = 8
rules = true
";

#[test]
fn a_table_is_read_as_it_is_written() {
    let Plan {
        table,
        grants,
        daemon_user,
    } = parse(GOOD).unwrap();
    assert_eq!((grants, daemon_user), (2, 65_534));
    let as_other = parse(&format!("daemon_user = 998\n{GOOD}")).unwrap();
    assert_eq!(as_other.daemon_user, 998);
    let first = Grant {
        user: 1000,
        interface: "eth0".to_owned(),
        vlan: 0,
        mode: XdpMode::Generic,
        addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        ports: 31900..=31999,
        queues: 2..=2,
        umem_bytes: 64 << 20,
        rules: false,
    };
    let second = Grant {
        user: 1001,
        interface: "eth1".to_owned(),
        vlan: 5,
        mode: XdpMode::Native,
        addresses: vec!["10.0.0.1".parse().unwrap()],
        ports: 7..=7,
        queues: 0..=3,
        umem_bytes: 8 << 20,
        rules: true,
    };
    assert_eq!(table, Table::new(vec![first, second]).unwrap());
}

#[test]
fn a_wrong_table_is_refused_with_its_reason() {
    for (from, to, said) in [
        ("queues = \"2\"", "queues = \"2-\"", "FIRST-LAST"),
        ("ports = \"7\"", "ports = \"70000\"", "FIRST-LAST"),
        ("vlan = 5", "vlan = 4095", "1 to 4094"),
        ("vlan = 5", "vlan = 0", "1 to 4094"),
        ("umem_mib = 8", "umem = 8", "umem"),
        ("native", "fast", "fast"),
        ("user = 1000", "", "user"),
        ("10.0.0.1", "10.0.0", "address"),
        ("eth1", "eth0", "different modes"),
    ] {
        let why = parse(&GOOD.replace(from, to)).map(|_| ()).unwrap_err();
        assert!(why.contains(said), "{to}: {why}");
    }
    let as_root = parse(&format!("daemon_user = 0\n{GOOD}"));
    assert!(as_root.unwrap_err().contains("not root"));
    assert!(parse("").unwrap_err().contains("[[grant]]"));
}
