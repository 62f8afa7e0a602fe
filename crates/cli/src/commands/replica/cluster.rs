//! `dunlin replica bootstrap`, `status` and `snapshot`: they ask replicas questions and give them
//! orders. The user names each replica by its address.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use dunlin::ConnectOptions;
use dunlin::Settings;
use dunlin::replica::{
    AskError, Inquirer, Member, Members, MembersError, Order, Role, Roster, Status,
};
use dunlin::settings::Configurable;
use serde_json::{Value, json};

use crate::commands::echo::{EndpointArgs, over, span};
use crate::commands::target::{bind_ip, resolve};
use crate::misuse::Misuse;
use crate::say::print;

/// The arguments of most of these commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Addresses of the replicas, at which they also reach each other
    #[arg(value_name = "HOST:PORT", required = true)]
    pub(super) replicas: Vec<String>,
    /// How long to wait for each replica
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = span)]
    pub(super) timeout: Duration,
    #[command(flatten)]
    pub(super) endpoint: EndpointArgs,
}

/// Makes a cluster.
///
/// # Errors
/// A replica does not answer, belongs to another cluster, or has restored items that differ from
/// those of the other replicas; or the replicas make no cluster ([`MembersError`]). Replicas that
/// got a seat before the error keep it, and the same command can be repeated.
pub(crate) fn bootstrap(args: &Args) -> anyhow::Result<()> {
    let settings = args.endpoint.settings()?;
    over!(args.endpoint.transport, bootstrap_over(args, &settings))
}

/// Shows the state of replicas.
///
/// # Errors
/// A replica does not answer; the others are shown.
pub(crate) fn status(args: &Args) -> anyhow::Result<()> {
    let settings = args.endpoint.settings()?;
    over!(args.endpoint.transport, status_over(args, &settings))
}

/// An endpoint for questions, at a port that the system chooses.
pub(super) fn inquirer<T: Configurable>(
    args: &Args,
    settings: &Settings,
) -> anyhow::Result<Inquirer<T>> {
    let address = resolve(&args.replicas[0])?;
    let nexus = settings
        .nexus()
        .bind(SocketAddr::new(bind_ip(address.ip()), 0))?;
    let connect = ConnectOptions {
        patience: args.timeout,
        ..settings.connect_options()
    };
    Ok(Inquirer::new(settings.endpoint::<T>(&nexus), connect)?)
}

fn bootstrap_over<T: Configurable>(args: &Args, settings: &Settings) -> anyhow::Result<()> {
    let count = args.replicas.len();
    let wrong = MembersError::Count(count);
    if count.is_multiple_of(2) || count > dunlin::replica::MAX_MEMBERS {
        return Err(Misuse(wrong.to_string()).into());
    }
    let mut inquirer = inquirer::<T>(args, settings)?;
    let (mut members, mut seated) = (Vec::new(), Vec::new());
    let mut items = None;
    for address in &args.replicas {
        let status = inquirer.status(address).with_context(|| address.clone())?;
        members.push(Member {
            id: status.id,
            address: address.clone(),
        });
        if status.role == Role::Idle && *items.get_or_insert(status.items) != status.items {
            return Err(AskError::OtherItems).context(address.clone());
        }
        seated.extend(status.members.map(|roster| (address, roster)));
    }
    let members = Members::new(members).map_err(|error| Misuse(error.to_string()))?;
    let members = members.begin_with(items.unwrap_or(0));
    // This check comes before any further replica gets a seat.
    for (address, roster) in seated {
        if roster.cluster() != members.cluster() {
            return Err(AskError::Taken).context(address.clone());
        }
    }
    for member in members.iter() {
        let seated = inquirer.bootstrap(&member.address, &members);
        seated.with_context(|| member.address.clone())?;
    }
    let noun = if count == 1 { "replica" } else { "replicas" };
    let cluster = name(&Roster::first(&members));
    match args.endpoint.json {
        true => print(&format!("{}\n", json!({ "cluster": cluster }))),
        false => print(&format!("cluster {cluster} of {count} {noun}\n")),
    }
}

/// The name of a cluster, as commands show it.
pub(super) fn name(roster: &Roster) -> String {
    format!("{:016x}", roster.cluster())
}

fn status_over<T: Configurable>(args: &Args, settings: &Settings) -> anyhow::Result<()> {
    let mut inquirer = inquirer::<T>(args, settings)?;
    let mut silent = Vec::new();
    for address in &args.replicas {
        match inquirer.status(address) {
            Ok(status) if args.endpoint.json => print(&format!("{}\n", object(address, &status)))?,
            Ok(status) => print(&row(address, &status))?,
            Err(error) => silent.push(format!("{address}: {error}")),
        }
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(anyhow!("{}", silent.join("; "))),
    }
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Idle => "without a cluster",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Leader => "leader",
    }
}

fn row(address: &str, status: &Status) -> String {
    let role = role(status.role);
    let mut row = format!("{address}  {:016x}  {role}", status.id);
    if status.items != 0 {
        row += &format!("  {} restored keys", status.keys);
    }
    if let Some(members) = &status.members {
        row += &format!(
            "  term {}, {} keys, applied {} of {}, cluster {} of {}",
            status.term,
            status.keys,
            status.applied,
            status.last,
            name(members),
            members.iter().count()
        );
        for follower in status.followers.iter().filter(|it| it.size > 0) {
            let address = members.get(follower.id).map_or("?", |it| &it.address);
            let (sent, size) = (kib(follower.sent), kib(follower.size));
            row += &format!(", {address} has {sent} of a snapshot of {size} KiB");
        }
    }
    row + "\n"
}

/// Bytes in KiB, rounded down.
const fn kib(bytes: u64) -> u64 {
    bytes >> 10
}

fn object(address: &str, status: &Status) -> Value {
    let members = status.members.as_ref();
    let of = |id| Some(&members?.get(id)?.address);
    let leader = of(status.leader);
    let followers = status.followers.iter().map(|it| {
        json!({
            "address": of(it.id),
            "matched": it.matched,
            "snapshot": { "sent": it.sent, "size": it.size },
        })
    });
    let followers: Vec<Value> = followers.collect();
    json!({
        "address": address,
        "id": format!("{:016x}", status.id),
        "role": role(status.role),
        "term": status.term,
        "leader": leader,
        "followers": followers,
        "last": status.last,
        "committed": status.committed,
        "applied": status.applied,
        "keys": status.keys,
        "cluster": members.map(name),
    })
}

/// Orders replicas to drop the log entries whose changes their items already contain, unless a
/// follower needs these entries.
///
/// # Errors
/// A replica does not answer; the others have got the order.
pub(crate) fn snapshot(args: &Args) -> anyhow::Result<()> {
    let settings = args.endpoint.settings()?;
    over!(args.endpoint.transport, snapshot_over(args, &settings))
}

fn snapshot_over<T: Configurable>(args: &Args, settings: &Settings) -> anyhow::Result<()> {
    let mut inquirer = inquirer::<T>(args, settings)?;
    let mut silent = Vec::new();
    for address in &args.replicas {
        if let Err(error) = inquirer.order(address, &Order::Snapshot) {
            silent.push(format!("{address}: {error}"));
        }
    }
    match silent.is_empty() {
        true => Ok(()),
        false => Err(anyhow!("{}", silent.join("; "))),
    }
}
