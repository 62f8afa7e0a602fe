//! Versions that their authors have withdrawn. Cargo keeps the registry's list of versions of each
//! package that it has resolved; a package without such a file is not judged, and a file is as old
//! as cargo's last resolution. Called by `deny`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;

use super::Package;

/// The packages of which the version in use is withdrawn.
pub(super) fn faults(packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let indexes = indexes()?;
    let mut faults = Vec::new();
    for package in packages.iter().filter(|it| it.source.is_some()) {
        let Package { name, version, .. } = package;
        let files = indexes.iter().map(|index| index.join(place(name)));
        if files
            .filter_map(|file| fs::read(file).ok())
            .any(|list| is_withdrawn(&list, version))
        {
            faults.push(format!("{name} {version}: this version was withdrawn"));
        }
    }
    Ok(faults)
}

/// The folders in which cargo keeps lists of versions, one for each registry.
fn indexes() -> anyhow::Result<Vec<PathBuf>> {
    let home = match (std::env::var_os("CARGO_HOME"), std::env::var_os("HOME")) {
        (Some(cargo), _) => PathBuf::from(cargo),
        (None, home) => PathBuf::from(home.context("HOME is not set")?).join(".cargo"),
    };
    let folders = fs::read_dir(home.join("registry/index"));
    let folders = folders.into_iter().flatten().flatten();
    Ok(folders.map(|it| it.path().join(".cache")).collect())
}

/// The path of a package's list, by the rules of cargo's index.
fn place(name: &str) -> String {
    let name = name.to_lowercase();
    match name.len() {
        1 | 2 => format!("{}/{name}", name.len()),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    }
}

/// Whether a list says that a version was withdrawn. The list has one object of JSON for each
/// version, between bytes of zero.
fn is_withdrawn(list: &[u8], version: &str) -> bool {
    let objects = list.split(|byte| *byte == 0);
    let mut objects = objects.filter_map(|it| serde_json::from_slice::<Value>(it).ok());
    objects.any(|it| it["vers"] == version && it["yanked"] == true)
}

#[cfg(test)]
mod tests;
