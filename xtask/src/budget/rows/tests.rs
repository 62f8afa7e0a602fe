//! The rows, and the arguments of the example for each.

use std::collections::BTreeSet;

use super::{Build, of};

#[test]
fn each_row_has_a_name_and_a_run_of_its_own() {
    let rows = of(Build::Measured);
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    let runs: BTreeSet<_> = rows.iter().map(super::Row::args).collect();
    assert_eq!((names.len(), runs.len()), (rows.len(), rows.len()));
}

#[test]
fn the_arguments_are_those_that_the_example_documents() {
    let args = |name: &str| {
        let rows = of(Build::Measured);
        let row = rows.iter().find(|row| row.name == name).unwrap();
        row.args().join(" ")
    };
    assert_eq!(args("batch-56"), "56 32 4 6000");
    assert_eq!(args("one-deadline"), "32 1 4 6000 deadline");
    assert_eq!(args("sessions-8"), "32 32 8 6000");
    assert_eq!(args("idle"), "32 0 4 6000");
}

#[test]
fn the_typed_program_runs_with_each_number_of_keys() {
    let rows = of(Build::Typed);
    let runs: Vec<_> = rows.iter().map(|row| row.args().join(" ")).collect();
    assert_eq!(runs, ["0 6000", "1 6000", "2 6000"]);
}

#[test]
fn the_program_with_futures_runs_batches_one_at_a_time_and_joined_calls() {
    let rows = of(Build::Faces);
    let runs: Vec<_> = rows.iter().map(|row| row.args().join(" ")).collect();
    assert_eq!(runs, ["32 32 4 6000", "32 1 4 6000", "32 32 4 6000 joined"]);
}

#[test]
fn the_program_with_layers_runs_each_face() {
    let rows = of(Build::Layer);
    let runs: Vec<_> = rows.iter().map(|row| row.args().join(" ")).collect();
    let faces = ["plain", "layer", "channel", "channel-layer"];
    assert_eq!(runs, faces.map(|face| format!("{face} 6000")));
}

#[test]
fn the_program_of_the_key_value_service_runs_each_mix() {
    let rows = of(Build::Kv);
    let runs: Vec<_> = rows.iter().map(|row| row.args().join(" ")).collect();
    assert_eq!(
        runs,
        ["100 60 6000", "95 60 6000", "0 60 6000", "100 1 6000"]
    );
}

#[test]
fn the_programs_over_dpdk_and_xdp_run_messages_of_32_bytes() {
    let runs_of = |build| {
        let rows = of(build);
        rows.iter()
            .map(|row| row.args().join(" "))
            .collect::<Vec<_>>()
    };
    let runs = ["32 32 4 6000", "32 1 4 6000", "32 32 4 6000 packed"];
    assert_eq!(runs_of(Build::Dpdk), runs);
    assert_eq!(runs_of(Build::Xdp), runs);
}

#[test]
fn the_program_of_large_requests_runs_one_at_a_time() {
    let rows = of(Build::Large);
    let runs: Vec<_> = rows.iter().map(|row| row.args().join(" ")).collect();
    assert_eq!(runs, ["1 6000"]);
}

#[test]
fn the_programs_of_services_run_each_part_and_kind() {
    let runs = |build| -> Vec<String> {
        let rows = of(build).into_iter();
        rows.map(|row| row.args().join(" ")).collect()
    };
    let puts = ["0 1 6000", "1 1 6000", "0 32 6000", "1 32 6000"];
    assert_eq!(runs(Build::Replica), puts);
    assert_eq!(runs(Build::Index), ["60 6000", "1 6000"]);
    let numbers = ["0 60 6000", "1 60 6000", "2 60 6000", "2 1 6000"];
    assert_eq!(runs(Build::Sequencer), numbers);
}
