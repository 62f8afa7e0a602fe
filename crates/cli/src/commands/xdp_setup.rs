//! `dunlin xdp-setup`: a daemon that opens AF_XDP sockets for processes without privilege, as a
//! table that belongs to root permits, until Ctrl-C.

mod table;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dunlin::transport::xdp_setup::Daemon;
use serde_json::json;

use crate::say::print;
use harness::signal;
use table::Plan;

const EXAMPLES: &str = "\
Examples:
  dunlin xdp-setup                                  with /etc/dunlin/xdp-setup.toml
  dunlin xdp-setup --check --table xdp-setup.toml   only reads the table
  dunlin echo-server 10.0.0.1:31850 --transport xdp:eth0 --set xdp.setup=/run/xdp-setup.sock

The table belongs to root, and only root may write it. It has an entry for each user and interface:

  # daemon_user = 998            # the user that the daemon becomes if root starts it; 65534
  [[grant]]
  user = 1000                    # the user's number
  interface = \"eth0\"
  addresses = [\"10.0.0.1\"]       # of the user's endpoints
  ports = \"31900-31999\"          # their UDP ports
  queues = \"0-3\"                 # of the interface
  # vlan = 5                     # the addresses are in this VLAN of the interface
  # mode = \"native\"              # as xdp.mode; all grants of an interface have the same
  # umem_mib = 64                # most memory of a queue, which the kernel pins
  # rules = true                 # ask the device for rules (ethtool -N), which put the packets of
                                 # an endpoint into its queue and end with it; tried with no card

The daemon needs cap_net_admin, cap_net_raw, cap_bpf and cap_ipc_lock, and gives up everything else:
if root starts it, it becomes the daemon_user, with the group of the same number and no other.
It serves its own network namespace. A process that has a socket can send any frame on the
interface, whatever its addresses. If the daemon ends, its processes continue through the kernel.

Exit codes: 0, Ctrl-C ended it, or the table is good; 1, it cannot serve; 2, the table or the usage
is wrong.";

/// The time between two checks for a signal.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The arguments of `dunlin xdp-setup`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file with the users and what they may have
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/dunlin/xdp-setup.toml"
    )]
    table: PathBuf,
    /// The UNIX socket at which processes ask; its folder must exist
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/run/dunlin/xdp-setup.sock"
    )]
    socket: PathBuf,
    /// Reads the table and ends
    #[arg(long)]
    check: bool,
    /// One JSON object, on the standard output
    #[arg(long)]
    json: bool,
}

/// Serves until a signal arrives.
///
/// # Errors
/// The table is wrong, or the socket cannot be opened.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Plan {
        table,
        grants,
        daemon_user,
    } = table::read(&args.table)?;
    if args.check {
        return say(args, "grants", grants, &format!("{grants} grants"));
    }
    signal::watch()?;
    let listener = listen(&args.socket)?;
    let at = Socket(&args.socket);
    // The daemon then owns the socket, so it can remove it even from a folder in which each user
    // may remove only its own files.
    chown(&args.socket, Some(daemon_user), Some(daemon_user))
        .or_else(|error| match error.kind() {
            // A user other than root has started the daemon, which stays that user.
            ErrorKind::PermissionDenied => Ok(()),
            _ => Err(error),
        })
        .context("cannot give the socket to the daemon's user")?;
    // Threads that start from now on have no other privileges.
    Daemon::give_up_privileges(daemon_user).context("cannot give up privileges")?;
    let daemon = Daemon::new(table, |said| eprintln!("dunlin: {said}"));
    let _ending = Ending(&daemon);
    let served = daemon.clone();
    thread::Builder::new()
        .name("dunlin-serve".to_owned())
        .spawn(move || served.serve(&listener))?;
    let path = at.0.display().to_string();
    say(
        args,
        "listening",
        &path,
        &format!("listening at {path}, {grants} grants"),
    )?;
    while signal::check().is_ok() {
        thread::sleep(BETWEEN_LOOKS);
    }
    Ok(())
}

fn say(args: &Args, name: &str, value: impl serde::Serialize, text: &str) -> anyhow::Result<()> {
    match args.json {
        true => print(&format!("{}\n", json!({ name: value }))),
        false => print(&format!("{text}\n")),
    }
}

/// Ends the daemon when it is dropped, even if the output is closed; otherwise the rules that the
/// daemon has made would stay.
struct Ending<'a>(&'a Daemon);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The path of a socket, which is removed when this value is dropped.
struct Socket<'a>(&'a Path);

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        // If this fails, the next daemon removes the socket.
        let _ = fs::remove_file(self.0);
    }
}

/// Listens at the path. The socket of a daemon that was killed is replaced.
fn listen(path: &Path) -> anyhow::Result<UnixListener> {
    let shown = path.display();
    if UnixStream::connect(path).is_ok() {
        bail!("another daemon listens at {shown}; stop it, or choose another --socket");
    }
    if fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket()) {
        fs::remove_file(path).with_context(|| format!("cannot remove {shown}"))?;
    }
    let listener = UnixListener::bind(path).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => "; make its folder first, or choose another --socket",
            _ => "",
        };
        anyhow::anyhow!("cannot listen at {shown}: {error}{hint}")
    })?;
    // The table decides which users get sockets, not the file.
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}
