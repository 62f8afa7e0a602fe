//! `dunlin replica join`, `leave` and `transfer-leader`: orders to the leader of a cluster, whose
//! completion these commands wait for.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use dunlin::Settings;
use dunlin::replica::{Inquirer, Member, Order, Role, Roster, Status};
use dunlin::settings::Configurable;
use serde_json::json;

use super::cluster::{Args, inquirer, name};
use crate::commands::echo::over;
use crate::say::print;

const EXAMPLES: &str = "\
Examples, with a cluster at 10.0.0.1 to 10.0.0.3:
  dunlin replica serve --listen 10.0.0.4:7101 --disk data      on the new machine
  dunlin replica join 10.0.0.4:7101 10.0.0.1:7101 10.0.0.2:7101 10.0.0.3:7101
  dunlin replica leave 10.0.0.3:7101 10.0.0.1:7101 10.0.0.2:7101 10.0.0.4:7101
  dunlin replica transfer-leader --to 10.0.0.2:7101 10.0.0.1:7101 10.0.0.2:7101

A member that joins gets the log before it votes. While members change, an entry needs a majority of
the old ones and one of the new ones. A change that has begun continues if this command ends.

Exit codes: 0, it is done; 1, no leader answers, or it was not done within --timeout; 2, the usage
is wrong.";

/// The arguments of `dunlin replica join` and `leave`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ChangeArgs {
    /// The replica that joins or leaves, as the others reach it
    #[arg(value_name = "MEMBER")]
    member: String,
    #[command(flatten)]
    common: Args,
}

/// The arguments of `dunlin replica transfer-leader`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TransferArgs {
    /// The replica that should lead; without it, one that has as much of the log as any other
    #[arg(long, value_name = "HOST:PORT")]
    to: Option<String>,
    #[command(flatten)]
    common: Args,
}

/// Lets a process without a seat join.
///
/// # Errors
/// It has a seat in another cluster, there is no leader, or it has not caught up within the time.
pub(super) fn join(args: &ChangeArgs) -> anyhow::Result<()> {
    let settings = args.common.endpoint.settings()?;
    over!(args.common.endpoint.transport, join_over(args, &settings))
}

/// Lets a member leave.
///
/// # Errors
/// It is not a member, there is no leader, or the others do not agree within the time.
pub(super) fn leave(args: &ChangeArgs) -> anyhow::Result<()> {
    let settings = args.common.endpoint.settings()?;
    over!(args.common.endpoint.transport, leave_over(args, &settings))
}

/// Makes another replica the leader.
///
/// # Errors
/// No replica leads, or the other one does not become the leader within the time.
pub(super) fn transfer(args: &TransferArgs) -> anyhow::Result<()> {
    let settings = args.common.endpoint.settings()?;
    over!(
        args.common.endpoint.transport,
        transfer_over(args, &settings)
    )
}

/// The leader of a cluster, by the addresses that a command names.
struct Leader<T: Configurable> {
    inquirer: Inquirer<T>,
    addresses: Vec<String>,
    end: Instant,
}

impl<T: Configurable> Leader<T> {
    fn new(args: &Args, settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self {
            inquirer: inquirer::<T>(args, settings)?,
            addresses: args.replicas.clone(),
            end: Instant::now() + args.timeout,
        })
    }

    /// The state of the leader, with its members.
    fn find(&mut self) -> anyhow::Result<(Status, Roster)> {
        self.wait_for(
            "none of these replicas leads; name all of them",
            |status, roster| Some((status.clone(), roster.clone())),
        )
    }

    /// Asks leaders until one of them gives an answer.
    fn wait_for<R>(
        &mut self,
        failure: &str,
        mut answer: impl FnMut(&Status, &Roster) -> Option<R>,
    ) -> anyhow::Result<R> {
        loop {
            for address in &self.addresses {
                let Ok(status) = self.inquirer.status(address) else {
                    continue;
                };
                if let (Role::Leader, Some(roster)) = (status.role, &status.members)
                    && let Some(answer) = answer(&status, roster)
                {
                    return Ok(answer);
                }
            }
            if Instant::now() >= self.end {
                bail!("{failure}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn order(&mut self, leader: &Status, roster: &Roster, order: &Order) -> anyhow::Result<()> {
        let address = address_of(roster, leader.id)?;
        self.inquirer
            .order(&address, order)
            .with_context(|| address)?;
        Ok(())
    }

    /// Makes another member the leader, and returns its address.
    fn transfer(&mut self, to: u64) -> anyhow::Result<String> {
        let (old, roster) = self.find()?;
        self.order(&old, &roster, &Order::Transfer(to))?;
        self.addresses
            .extend(roster.iter().map(|member| member.address.clone()));
        let failure = "no other replica has become the leader; are the others in order?";
        let leader = self.wait_for(failure, |new, _| (new.term > old.term).then_some(new.id))?;
        let address = address_of(&roster, leader)?;
        match to == 0 || to == leader {
            true => Ok(address),
            false => Err(anyhow!("{address} has become the leader meanwhile")),
        }
    }
}

fn address_of(roster: &Roster, id: u64) -> anyhow::Result<String> {
    let member = roster
        .get(id)
        .context("the leader is not one of its members; try again")?;
    Ok(member.address.clone())
}

fn id_of(roster: &Roster, address: &str) -> Option<u64> {
    let member = roster.iter().find(|member| member.address == address)?;
    Some(member.id)
}

fn join_over<T: Configurable>(args: &ChangeArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut leader = Leader::<T>::new(&args.common, settings)?;
    let address = &args.member;
    let joiner = leader
        .inquirer
        .status(address)
        .with_context(|| address.clone())?;
    let (status, roster) = leader.find()?;
    let id = joiner.id;
    let votes = |roster: &Roster| {
        roster
            .part(id)
            .is_some_and(|it| it.is_voter && !roster.is_joint())
    };
    if !votes(&roster) {
        if roster
            .iter()
            .any(|it| it.address == *address && it.id != id)
        {
            bail!("the cluster has another member at {address}; let that one leave first");
        }
        let member = Member {
            id,
            address: address.clone(),
        };
        if roster.part(id).is_none() {
            let seat = roster.for_joining(member.clone());
            let seated = leader.inquirer.join(address, &seat);
            seated.with_context(|| address.clone())?;
            leader.order(&status, &roster, &Order::Join(member))?;
        }
        let failure = format!(
            "{address} does not vote yet; it does as soon as it has caught up, without this command"
        );
        leader.wait_for(&failure, |_, roster| votes(roster).then_some(()))?;
    }
    show(&args.common, &roster, address, "votes")
}

fn leave_over<T: Configurable>(args: &ChangeArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut leader = Leader::<T>::new(&args.common, settings)?;
    let address = &args.member;
    let (status, roster) = leader.find()?;
    let Some(id) = id_of(&roster, address) else {
        return show(&args.common, &roster, address, "is not a member");
    };
    if roster.iter().count() == 1 {
        bail!("{address} is the only member; a cluster without members has no items");
    }
    if status.id == id {
        leader.transfer(0)?;
    }
    let (status, roster) = leader.find()?;
    leader.order(&status, &roster, &Order::Leave(id))?;
    let failure = format!("{address} has not left yet; does a majority answer?");
    leader.wait_for(&failure, |_, roster| roster.get(id).is_none().then_some(()))?;
    show(&args.common, &roster, address, "has left")
}

fn transfer_over<T: Configurable>(args: &TransferArgs, settings: &Settings) -> anyhow::Result<()> {
    let mut leader = Leader::<T>::new(&args.common, settings)?;
    let (status, roster) = leader.find()?;
    let to = match &args.to {
        Some(to) => id_of(&roster, to)
            .with_context(|| format!("{to} is not one of the cluster's addresses"))?,
        None => 0,
    };
    if to == status.id {
        let address = address_of(&roster, to)?;
        return show(&args.common, &roster, &address, "leads already");
    }
    let address = leader.transfer(to)?;
    show(&args.common, &roster, &address, "leads")
}

fn show(args: &Args, roster: &Roster, address: &str, does: &str) -> anyhow::Result<()> {
    let cluster = name(roster);
    match args.endpoint.json {
        true => {
            let line = json!({ "cluster": cluster, "address": address, "does": does });
            print(&format!("{line}\n"))
        }
        false => print(&format!("{address} {does}\n")),
    }
}
