//! The table of `dunlin xdp-setup`: a file of TOML that only root can write.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use anyhow::Context;
use dunlin::transport::XdpMode;
use dunlin::transport::xdp_setup::{Grant, Table};
use serde::{Deserialize, Deserializer};

use crate::misuse::Misuse;

/// Permission bits that let users other than the owner write.
const OTHERS_WRITE: u32 = 0o022;

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The user that the daemon becomes if root starts it.
    #[serde(default = "user_without_files")]
    daemon_user: u32,
    #[serde(default)]
    grant: Vec<GrantRow>,
}

/// The content of a good file.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) table: Table,
    /// The number of its grants.
    pub(super) grants: usize,
    /// The user that the daemon becomes if root starts it.
    pub(super) daemon_user: u32,
}

/// An entry of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantRow {
    user: u32,
    interface: String,
    #[serde(default, deserialize_with = "vlan")]
    vlan: u16,
    #[serde(default)]
    mode: Mode,
    addresses: Vec<IpAddr>,
    #[serde(deserialize_with = "range")]
    ports: RangeInclusive<u16>,
    #[serde(deserialize_with = "range")]
    queues: RangeInclusive<u32>,
    #[serde(default = "usual_umem")]
    umem_mib: u32,
    /// Off unless asked for, because we had no device to test rules.
    #[serde(default)]
    rules: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Generic,
    Native,
}

impl From<GrantRow> for Grant {
    fn from(entry: GrantRow) -> Self {
        Self {
            user: entry.user,
            interface: entry.interface,
            vlan: entry.vlan,
            mode: match entry.mode {
                Mode::Generic => XdpMode::Generic,
                Mode::Native => XdpMode::Native,
            },
            addresses: entry.addresses,
            ports: entry.ports,
            queues: entry.queues,
            umem_bytes: u64::from(entry.umem_mib) << 20,
            rules: entry.rules,
        }
    }
}

/// Reads the table.
///
/// # Errors
/// [`Misuse`] if a user other than root can write the file, or if the table is wrong.
pub(super) fn read(path: &Path) -> anyhow::Result<Plan> {
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot read {shown} (--table)"))?;
    let state = file.metadata()?;
    if state.uid() != 0 || state.mode() & OTHERS_WRITE != 0 {
        let what = format!("{shown} must belong to root, and only root may write it");
        return Err(Misuse(format!("{what}: chown root {shown}; chmod 644 {shown}")).into());
    }
    let mut text = String::new();
    file.read_to_string(&mut text)
        .with_context(|| format!("cannot read {shown}"))?;
    parse(&text).map_err(|why| Misuse(format!("{shown}: {why}")).into())
}

fn parse(text: &str) -> Result<Plan, String> {
    let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
    let daemon_user = written.daemon_user;
    if daemon_user == 0 {
        return Err("daemon_user is not root".to_owned());
    }
    let grants: Vec<Grant> = written.grant.into_iter().map(Grant::from).collect();
    let count = grants.len();
    if count == 0 {
        return Err("there is no [[grant]]; `dunlin xdp-setup --help` shows one".to_owned());
    }
    let table = Table::new(grants).map_err(|error| error.to_string())?;
    Ok(Plan {
        table,
        grants: count,
        daemon_user,
    })
}

/// The user that owns no files, on most systems.
fn user_without_files() -> u32 {
    65_534
}

fn usual_umem() -> u32 {
    64
}

/// A number of a VLAN.
fn vlan<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let number = u16::deserialize(from)?;
    match number {
        1..=4094 => Ok(number),
        _ => Err(serde::de::Error::custom(
            "a VLAN has a number from 1 to 4094",
        )),
    }
}

/// A number, or the first and the last of several: `"0-3"`.
fn range<'de, D, N>(from: D) -> Result<RangeInclusive<N>, D::Error>
where
    D: Deserializer<'de>,
    N: FromStr + Copy,
{
    let text = String::deserialize(from)?;
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) => Ok(first..=last),
        _ => Err(serde::de::Error::custom(format!(
            "{text:?} is neither a number nor FIRST-LAST"
        ))),
    }
}

#[cfg(test)]
mod tests;
