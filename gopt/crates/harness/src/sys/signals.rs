//! Signal handlers, dying together with the parent process, and ending groups of processes.

use std::io;
use std::mem;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr;

use super::result::checked;

/// Calls `handler` for the first `signal` that comes. A second one takes the default action.
///
/// Interrupted system calls are restarted: waits have time limits of their own.
///
/// # Errors
/// The system refuses.
pub(crate) fn handle_once(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
) -> io::Result<()> {
    // SAFETY: all zero is a valid `sigaction`: no handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: `action` is complete, and the handler stores to one atomic (`crate::signal`).
    checked(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })?;
    Ok(())
}

/// Makes the system kill this process when the thread that started it ends, for whatever reason.
///
/// # Errors
/// The system refuses.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: this option takes one integer argument and touches no memory of ours.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    Ok(())
}

/// Makes the kernel kill the process that this command starts when the thread that started it ends.
pub fn end_with_this(command: &mut Command) {
    // SAFETY: between fork and exec, this makes one system call, and touches no memory that another
    // thread may have locked.
    unsafe { command.pre_exec(die_with_parent) };
}

/// True if a child has ended. Does not reap the child, so no other process gets its number.
///
/// # Errors
/// The child was reaped already.
pub fn has_ended(child: &Child) -> io::Result<bool> {
    // SAFETY: all zero is a valid `siginfo_t`.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is valid for writes.
    checked(unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut info, options) })?;
    // SAFETY: the system has filled in the fields for a child, or left all zero.
    Ok(unsafe { info.si_pid() } != 0)
}

/// Kills all processes of the group that a child leads. The child must not have been reaped:
/// otherwise another process may have its number.
pub fn kill_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else {
        return;
    };
    // SAFETY: the call takes two integers, and touches no memory of ours.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}
