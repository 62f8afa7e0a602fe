//! Each rule refuses what it forbids, and nothing else.

use serde_json::json;

use super::*;

fn rules() -> Rules {
    let text = "[licences]\nallow = [\"MIT\"]\n[sources]\nallow = [\"home\"]\n\
                [users]\nruntime = [\"face\"]\n";
    Rules::parse(text).unwrap()
}

fn metadata() -> Value {
    let package = |name: &str| {
        json!({
            "id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": "home",
            "dependencies": [],
        })
    };
    json!({
        "packages": [package("face"), package("runtime"), package("for-windows")],
        "resolve": { "nodes": [
            { "id": "face", "dependencies": ["runtime"] },
            { "id": "runtime", "dependencies": [] },
        ] },
    })
}

fn found(metadata: &Value) -> Vec<String> {
    faults(&read(metadata).unwrap(), &rules()).unwrap()
}

#[test]
fn packages_that_follow_the_rules_are_no_faults() {
    assert_eq!(read(&metadata()).unwrap().len(), 2, "only what is built");
    assert_eq!(found(&metadata()), [""; 0]);
}

#[test]
fn each_rule_finds_its_fault() {
    let wildcard = json!([{ "name": "a", "req": "*" }, { "name": "b", "req": "*", "path": "/b" }]);
    for (field, value, fault) in [
        ("license", json!(null), "names no licence"),
        ("license", json!("GPL-3.0"), "licence GPL-3.0 is not"),
        (
            "source",
            json!("git+elsewhere"),
            "source git+elsewhere is not",
        ),
        ("dependencies", wildcard, "any version of a"),
        ("name", json!("other"), "uses runtime"),
    ] {
        let mut metadata = metadata();
        metadata["packages"][0][field] = value;
        let found = found(&metadata);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(fault), "{found:?}");
    }
}
