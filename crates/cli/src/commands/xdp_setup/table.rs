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

/// Permission bits that let other users than the owner write.
const OTHERS_WRITE: u32 = 0o022;

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    grant: Vec<GrantRow>,
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
    /// Off unless asked for, because no device was at hand to test them.
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

/// Reads the table. Returns it, and the number of its grants.
///
/// # Errors
/// [`Misuse`] if another user than root can write the file, or if the table is wrong.
pub(super) fn read(path: &Path) -> anyhow::Result<(Table, usize)> {
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

fn parse(text: &str) -> Result<(Table, usize), String> {
    let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
    let grants: Vec<Grant> = written.grant.into_iter().map(Grant::from).collect();
    let count = grants.len();
    if count == 0 {
        return Err("there is no [[grant]]; `dunlin xdp-setup --help` shows one".to_owned());
    }
    let table = Table::new(grants).map_err(|error| error.to_string())?;
    Ok((table, count))
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
