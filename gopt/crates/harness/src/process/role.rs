//! What a child can be started as: each program has an enum of its roles, and one line in its
//! `main` for the hidden subcommand.

use clap::ValueEnum;

use super::Parent;
use crate::seat::Seat;
use crate::sys;

/// The hidden subcommand that starts a role.
pub const SUBCOMMAND: &str = "__role";

/// The roles of a program.
pub trait Role: ValueEnum + Send + Sync + 'static {
    /// The work of a child, until it is done or the parent ends it.
    ///
    /// # Errors
    /// What went wrong. The parent gets it as text.
    fn run(self, parent: &Parent) -> anyhow::Result<()>;
}

/// Arguments of the hidden subcommand.
#[derive(Debug, clap::Args)]
pub struct RoleArgs<R: Role> {
    #[arg(value_enum)]
    role: R,
    /// The processor to run on.
    #[arg(long)]
    cpu: Option<usize>,
    /// Run before all ordinary threads.
    #[arg(long)]
    first: bool,
}

/// The role's name on the command line.
pub(super) fn name<R: Role>(role: &R) -> String {
    let value = role.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The `main` of a child: its role, until it ends or the parent kills it. The parent gets a report
/// of what goes wrong.
///
/// # Errors
/// The parent has ended and cannot get that report.
pub fn run_role<R: Role>(args: RoleArgs<R>) -> anyhow::Result<()> {
    sys::die_with_parent()?;
    let parent = Parent;
    let seat = Seat {
        cpu: args.cpu,
        first: args.first,
    };
    let seated = seat.take().map_err(anyhow::Error::from);
    match seated.and_then(|()| args.role.run(&parent)) {
        Ok(()) => Ok(()),
        Err(error) => parent.fail(&error),
    }
}
