//! The roles of children. Each program has a list of its roles, and one line in its `main` for the
//! hidden subcommand.

use anyhow::Context;

use super::Parent;
use crate::seat::Seat;
use crate::sys;

/// The hidden subcommand that starts a role.
pub const SUBCOMMAND: &str = "__role";

/// The work of a child.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    name: &'static str,
    run: fn(&Parent) -> anyhow::Result<()>,
}

impl Role {
    /// A role with this name, which must be unique in the program. `run` works until it is done or
    /// the parent ends it; the parent gets its error as text.
    #[must_use]
    pub const fn new(name: &'static str, run: fn(&Parent) -> anyhow::Result<()>) -> Self {
        Self { name, run }
    }

    /// The role's name on the command line.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// Arguments of the hidden subcommand.
#[derive(Debug, clap::Args)]
pub struct RoleArgs {
    role: String,
    /// The processor to run on.
    #[arg(long)]
    cpu: Option<usize>,
    /// Whether the threads of the role have priority over all ordinary threads.
    #[arg(long)]
    first: bool,
}

/// The `main` of a child: runs its role until the role ends or the parent kills the process. The
/// parent gets a report of an error.
///
/// # Errors
/// There is no such role among `roles`. Or the role failed, and the parent has ended and cannot get
/// the report.
pub fn run_role(args: &RoleArgs, roles: impl IntoIterator<Item = Role>) -> anyhow::Result<()> {
    let mut roles = roles.into_iter();
    let role = roles.find(|role| role.name == args.role);
    let role = role.with_context(|| format!("there is no role `{}`", args.role))?;
    sys::die_with_parent()?;
    let parent = Parent;
    let seat = Seat {
        cpu: args.cpu,
        first: args.first,
    };
    let seated = seat.take().map_err(anyhow::Error::from);
    match seated.and_then(|()| (role.run)(&parent)) {
        Ok(()) => Ok(()),
        Err(error) => parent.fail(&error),
    }
}
