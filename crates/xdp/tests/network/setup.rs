//! Processes of users without privilege, whose sockets a daemon opens.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_xdp::setup::{Daemon, Grant, Table};
use dunlin_xdp::{Mode, Options, Xdp};

use crate::ends::{Echo, End, at};
use crate::processes::{BY_KERNEL, Holder, STEERED, socket};

/// The environment variable of a child that is the daemon: the path of its socket.
const SOCKET: &str = "DUNLIN_XDP_SOCKET";

/// Users with ports from 40100 and from 40200 on, and one without.
const ONE: u32 = 65_501;
const TWO: u32 = 65_502;
const STRANGER: u32 = 65_503;
/// The user of the daemon, which root starts.
const NOBODY: u32 = 65_534;

/// The daemon in a process of its own, which is killed when the value is dropped.
struct Running {
    child: Child,
    path: PathBuf,
}

impl Running {
    fn start(host: &Host, path: &Path) -> Self {
        let mut child = host.run(|| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "setup::users_get_what_the_table_grants"])
                .arg("--nocapture")
                .env(SOCKET, path)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("daemon: ready")));
        Self {
            child,
            path: path.to_owned(),
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.path);
    }

    /// The place of an endpoint that it opens.
    fn place(&self, queue: u32, user: u32, port: u16) -> String {
        format!("{queue} {user} {port} {}", self.path.display())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs the daemon until it is killed.
fn serve(path: &Path) {
    let grant = |user, ports| Grant {
        user,
        interface: "link0".to_owned(),
        vlan: 0,
        mode: Mode::Generic,
        addresses: vec![[10, 79, 0, 2].into()],
        ports,
        queues: 0..=1,
        umem_bytes: 4 << 20,
        rules: true,
    };
    let grants = vec![
        grant(ONE, 40100..=40199),
        grant(TWO, 40200..=40299),
        grant(0, 40300..=40399),
    ];
    let daemon = Daemon::new(Table::new(grants).unwrap(), |_| ());
    let listener = UnixListener::bind(path).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(path, open).unwrap();
    Daemon::give_up_privileges(NOBODY).unwrap();
    println!("daemon: ready");
    daemon.serve(&listener);
}

/// A path for a socket that any user may reach.
fn path_of(name: &str) -> PathBuf {
    let name = format!("dunlin-{name}-{}.sock", std::process::id());
    std::env::temp_dir().join(name)
}

#[test]
fn users_get_what_the_table_grants() {
    if let Some(path) = std::env::var_os(SOCKET) {
        return serve(Path::new(&path));
    }
    let Some(network) = Network::with_queues(3) else {
        return;
    };
    let host = &network.right;
    let daemon = Running::start(host, &path_of("grants"));
    let from = socket(&network.left);
    let mut one = Holder::try_start(host, &daemon.place(0, ONE, 40100)).unwrap();
    assert_eq!(one.reached_from(&from), STEERED);
    assert_eq!(one.open(&daemon.place(0, ONE, 40101)), "opened");
    let refused = |queue, user, port| {
        let place = daemon.place(queue, user, port);
        Holder::try_start(host, &place).map(|_| ()).unwrap_err()
    };
    for (queue, user, port, said) in [
        (1, STRANGER, 40110, "does not grant user 65503 queue 1"),
        (1, TWO, 40110, "does not grant user 65502 10.79.0.2:40110"),
        (2, ONE, 40110, "does not grant user 65501 queue 2"),
        // Another process has the queue.
        (0, TWO, 40200, "has queue 0"),
    ] {
        let why = refused(queue, user, port);
        assert!(why.contains(said), "{why}");
    }
    // Without the daemon, the same user gets nothing.
    let alone = Holder::try_start(host, &format!("1 {ONE}")).map(|_| ());
    assert!(alone.unwrap_err().contains("CAP_"));
    let mut two = Holder::try_start(host, &daemon.place(1, TWO, 40200)).unwrap();
    assert_eq!(two.reached_from(&from), BY_KERNEL, "the other queue");
    // A killed client leaves its queue, its address and no program.
    let address = one.address;
    one.kill();
    let mut heir = Holder::try_start(host, &daemon.place(0, ONE, 40100)).unwrap();
    assert_eq!(heir.address, address);
    assert_eq!(heir.reached_from(&from), STEERED);
    heir.kill();
    two.kill();
    until(|| host.xdp_programs() == 0);
}

#[test]
fn endpoints_outlive_the_daemon() {
    let Some(network) = Network::with_queues(2) else {
        return;
    };
    let host = &network.right;
    let path = path_of("outlived");
    let mut daemon = Running::start(host, &path);
    let from = socket(&network.left);
    let mut one = Holder::try_start(host, &daemon.place(1, ONE, 40100)).unwrap();
    let mut two = Holder::try_start(host, &daemon.place(0, TWO, 40200)).unwrap();
    assert_eq!(two.reached_from(&from), STEERED);
    daemon.kill();
    until(|| host.xdp_programs() == 0);
    // Packets now come through the kernel, and none is lost.
    assert_eq!(two.reached_from(&from), BY_KERNEL);
    assert_eq!(one.reached_from(&from), BY_KERNEL);
    two.kill();
    let daemon = Running::start(host, &path);
    let mut heir = Holder::try_start(host, &daemon.place(0, TWO, 40200)).unwrap();
    assert_eq!(heir.reached_from(&from), STEERED);
    assert_eq!(one.reached_from(&from), BY_KERNEL);
}

#[test]
fn packets_take_the_kernels_way_when_the_daemon_has_ended() {
    let Some(network) = Network::with_queues(2) else {
        return;
    };
    let host = &network.right;
    let path = path_of("unsteered");
    let mut daemon = Running::start(host, &path);
    let mut options = Options {
        setup: Some(path),
        ..at(host, false)
    };
    options.udp.port = 40300;
    let near = End::<Xdp>::open(&network.left, 1, &at(&network.left, false));
    let mut echo = Echo::new(near, End::<Xdp>::open(host, 2, &options));
    echo.calls(500, 32);
    assert!(echo.far("tx_datagrams") > 50);
    daemon.kill();
    until(|| host.xdp_programs() == 0);
    let begin = Instant::now();
    while echo.far("tx_kernel_unsteered") == 0 {
        echo.calls(100, 32);
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it still sends frames"
        );
    }
    let sent = echo.far("tx_datagrams");
    echo.calls(100, 1000);
    assert_eq!(echo.far("tx_datagrams"), sent);
}
