//! Steps derived from the tree, so that none can be forgotten: every example, every loom test,
//! every fuzz target, and every command that the README shows.

use std::fmt::Display;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::step::{Step, sh, with_dpdk};
use crate::workspaces::FOLDERS;

/// Fuzz targets that read bytes which any client may send to a service that is open to strangers:
/// both protocols of the key-value service, and the whole front end. They run for
/// [`LONG_FUZZ_SECONDS`].
const LONG_FUZZ: [&str; 2] = ["kv", "memcached"];

const LONG_FUZZ_SECONDS: u32 = 60;

/// How long each other fuzz target runs. All together take little longer than nine targets of
/// twenty seconds each.
const FUZZ_SECONDS: u32 = 10;

/// The option that enables the planted bugs of all crates of a workspace, after a space; empty if
/// no crate has any. Tests must find the bugs. Every step that uses the build of the tests has the
/// option, so that each crate is compiled once.
pub(super) fn planted(metadata: &Value) -> anyhow::Result<String> {
    let mut features = Vec::new();
    for package in packages(metadata)? {
        let name = package["name"].as_str().context("a package has no name")?;
        if package["features"].get("mutants").is_some() {
            features.push(format!("{name}/mutants"));
        }
    }
    Ok(match &*features.join(",") {
        "" => String::new(),
        list => format!(" --features {list}"),
    })
}

/// The examples of all crates. An example is a program that ends by itself, with exit code 0, and
/// prints the content of the file `NAME.out` next to it. Only `x_server` may run forever, if there
/// is an `x_client`, which then runs at the same time. One command builds all examples, with the
/// features that the tests use: for a single crate, cargo would choose other features, and
/// recompile every crate below it. A feature that an example requires must be one that
/// the crate's tests enable.
pub(super) fn examples(metadata: &Value) -> anyhow::Result<Vec<Step>> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let planted = planted(metadata)?;
    let build = format!("cargo build --workspace{planted} --examples --locked");
    let mut steps = vec![sh("build examples", 10, build)];
    for package in packages(metadata)? {
        let targets = package["targets"].as_array();
        let targets = targets.context("a package has no targets")?;
        let examples: Vec<(&str, &str)> = targets
            .iter()
            .filter(|target| target["kind"][0] == "example")
            .filter_map(|target| Some((target["name"].as_str()?, target["src_path"].as_str()?)))
            .collect();
        let has = |pair: &str, side: &str| {
            let other = format!("{pair}_{side}");
            examples.iter().any(|(name, _)| *name == other)
        };
        for (name, source) in &examples {
            let script = match name.rsplit_once('_') {
                Some((pair, "server")) if has(pair, "client") => continue,
                Some((pair, "client")) if has(pair, "server") => beside_its_server(pair),
                _ => program(name),
            };
            let expected = Path::new(source).with_extension("out");
            let expected = expected.strip_prefix(root).unwrap_or(&expected);
            let script = format!("{script} | \"$XTASK\" expect {}", expected.display());
            let script = match package["name"] == "dunlin-dpdk" {
                true => with_dpdk(&script),
                false => script,
            };
            steps.push(sh(format!("example {name}"), 3, script));
        }
    }
    Ok(steps)
}

/// The path of the program of an example.
fn program(name: impl Display) -> String {
    format!("\"${{CARGO_TARGET_DIR:-target}}\"/debug/examples/{name}")
}

/// Runs a server and its client; the exit code is the client's.
fn beside_its_server(pair: &str) -> String {
    let [server, client] = ["server", "client"].map(|side| program(format!("{pair}_{side}")));
    format!("{server} & trap \"kill $!\" EXIT; {client}")
}

/// The loom tests of all crates that depend on loom.
pub(super) fn loom(metadata: &Value) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    for package in packages(metadata)? {
        let name = package["name"].as_str().context("a package has no name")?;
        let dependencies = package["dependencies"].as_array();
        let dependencies = dependencies.context("a package has no list of dependencies")?;
        if dependencies
            .iter()
            .any(|dependency| dependency["name"] == "loom")
        {
            let script = format!("RUSTFLAGS='--cfg loom' cargo test --locked -p {name} --lib loom");
            steps.push(sh(format!("loom {name}"), 10, script));
        }
    }
    Ok(steps)
}

/// The fuzz targets in `fuzz/fuzz_targets` of every workspace and every crate: for each folder a
/// step that builds them, and then a step for each target, which uses one processor, the longest
/// first. A run begins with the committed corpus, which it does not change, and puts new inputs
/// under `target`.
pub(super) fn fuzz(root: &Path) -> anyhow::Result<Vec<Step>> {
    let mut homes = Vec::new();
    for workspace in FOLDERS.map(|folder| root.join(folder)) {
        homes.push(workspace.clone());
        // A workspace without a folder `crates` has no targets there.
        for entry in std::fs::read_dir(workspace.join("crates"))
            .into_iter()
            .flatten()
        {
            homes.push(entry?.path());
        }
    }
    homes.sort();
    let mut steps = Vec::new();
    for fuzz in homes.iter().map(|home| home.join("fuzz")) {
        let mut names = fuzz_targets(&fuzz)?;
        names.sort_by_key(|name| std::cmp::Reverse(fuzz_seconds(name)));
        if names.is_empty() {
            continue;
        }
        let folder = fuzz.strip_prefix(root)?.display();
        let build = format!("cargo +nightly fuzz build --fuzz-dir {folder}");
        steps.push(sh(format!("build {folder}"), 8, build));
        let run = |name: &String| sh(format!("fuzz {name}"), 10, fuzzing(&folder, name));
        steps.extend(names.iter().map(run));
    }
    Ok(steps)
}

/// Runs one fuzz target.
fn fuzzing(folder: &impl Display, name: &str) -> String {
    let (found, corpus) = (
        format!("target/fuzz-found/{name}"),
        format!("target/fuzz-corpus/{name}"),
    );
    format!(
        "\"$XTASK\" corpus unpack {folder}/corpus/{name}.hex {corpus} && mkdir -p {found} && \
         cargo +nightly fuzz run --fuzz-dir {folder} {name} {found} {corpus} \
         -- -max_total_time={}",
        fuzz_seconds(name)
    )
}

fn fuzz_seconds(name: &str) -> u32 {
    match LONG_FUZZ.contains(&name) {
        true => LONG_FUZZ_SECONDS,
        false => FUZZ_SECONDS,
    }
}

/// The sorted names of the targets in one fuzz folder; none if there is no such folder.
fn fuzz_targets(fuzz: &Path) -> anyhow::Result<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(fuzz.join("fuzz_targets")) else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(
                path.file_stem()
                    .and_then(|stem| stem.to_str())
                    .map(str::to_owned),
            );
        }
    }
    names.sort();
    Ok(names)
}

/// The commands of the README: every line of its `sh` blocks, except comments and the commands that
/// clone the repository and enter it. Without a README there are none; tidy finds a missing page
/// through the links to it.
pub(super) fn readme(root: &Path) -> anyhow::Result<Vec<Step>> {
    let path = root.join("README.md");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let commands = commands(&std::fs::read_to_string(path)?);
    Ok(commands
        .into_iter()
        .map(|script| sh(format!("readme: {script}"), 20, script))
        .collect())
}

/// The step that builds the program of a README's command, if the command runs one. It can run at
/// the same time as another step, and the command itself often cannot, because it measures.
pub(super) fn build_of(command: &Step) -> Option<Step> {
    let arguments = command.script.strip_prefix("cargo run")?;
    let arguments = arguments.split(" -- ").next()?;
    let script = format!("cargo build{arguments}");
    Some(sh(format!("build of {}", command.name), 20, script))
}

/// The commands in the `sh` blocks of a page. A line that ends in a backslash continues.
fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_shell = false;
    let mut goes_on = false;
    for line in page.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            is_shell = !is_shell && language == "sh";
            continue;
        }
        if !is_shell || line.is_empty() || line.starts_with('#') {
            continue;
        }
        let part = line.trim_end_matches('\\').trim();
        match commands.last_mut().filter(|_| goes_on) {
            Some(command) => *command = format!("{command} {part}"),
            None => commands.push(part.to_owned()),
        }
        goes_on = line.ends_with('\\');
    }
    commands.retain(|command| !command.starts_with("git clone ") && !command.starts_with("cd "));
    commands
}

fn packages(metadata: &Value) -> anyhow::Result<&Vec<Value>> {
    metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")
}

#[cfg(test)]
mod tests;
