//! Two thin adapters pass. The check finds a long adapter, one that decides, and a missing one.

use super::*;

const NEXUS: &str = "crates/nexus/src/rpc/handshakes.rs";
const SIM: &str = "crates/sim/src/cluster/peering.rs";

/// An adapter whose one function has this body.
fn adapter(body: &str) -> String {
    format!(
        "impl<T: Open> Peering<T> for Ways<'_> {{\n    fn offer(&mut self) {{\n{body}\n}}\n}}\n"
    )
}

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let found = check(&Tree::of(files));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn thin_adapters_pass() {
    let thin = adapter("match made { Ok(offer) => offer, Err(error) => refuse(error) }");
    let deciding = adapter("match step { Step::Offer { .. } => {} }");
    let found = findings(&[
        (NEXUS, &thin),
        (SIM, &thin),
        ("crates/control/src/handshake/drive.rs", &deciding),
        ("crates/nexus/src/rpc/tests.rs", &deciding),
        (
            "crates/nexus/src/rpc.rs",
            "fn f(ways: &impl Peering<T>) { Step::New }",
        ),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_match_on_a_stage_is_found() {
    let deciding = adapter("match entry.stage { Stage::Asked => {} }");
    let found = findings(&[(NEXUS, &deciding), (SIM, &adapter(""))]);
    let what = "names `Stage`: `Handshake` decides about stages, no adapter does";
    assert_eq!(found, [format!("{NEXUS}:3: {what}")]);
}

#[test]
fn a_long_adapter_is_found() {
    let found = findings(&[(NEXUS, &adapter("")), (SIM, &adapter(&"\n".repeat(95)))]);
    let what = "has 100 lines; an adapter of handshakes has fewer than 100";
    assert_eq!(found, [format!("{SIM}: {what}")]);
}

#[test]
fn a_missing_adapter_is_found() {
    let found = findings(&[(NEXUS, &adapter(""))]);
    let what = "no file implements `Peering`, so this check finds no adapter";
    assert_eq!(found, [format!("crates/sim/: {what}")]);
}
