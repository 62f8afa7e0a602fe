//! Sockets: buffers, offloads, ports; and whether each transport opens.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use dunlin::{Auto, DEFAULT_PORT, Nexus, Open, Settings, Shm, Udp};
use dunlin_bench::baselines::sys as offloads;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::Options as ShmOptions;
use dunlin_transport::udp::Options;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::facts::{Fact, file, number, size};

pub(super) fn look() -> Vec<Fact> {
    vec![
        port(),
        buffer(
            "receive buffer",
            "rmem_max",
            Options::default().rcvbuf_bytes,
        ),
        buffer("send buffer", "wmem_max", Options::default().sndbuf_bytes),
        offload("UDP GSO", "4.18", |socket| {
            offloads::set_segment_size(socket, 1472)
        }),
        offload("UDP GRO", "5.0", offloads::set_gro),
        ephemeral(),
        namespaces(),
    ]
}

/// Opens an endpoint of each transport.
pub(super) fn try_transports() -> Vec<Fact> {
    let Ok(nexus) = Nexus::bind((Ipv4Addr::LOCALHOST, 0)) else {
        let fact = Fact::good("nexus", "cannot listen at 127.0.0.1");
        return vec![fact.missing("the loopback device is down: `ip link set lo up`")];
    };
    let what = "look at the limits above; `ulimit -n` and `ulimit -v` are the usual ones";
    vec![
        opens::<Shm>("shm", &nexus, "peers on this host", what),
        opens::<Udp>("udp", &nexus, "peers everywhere", what),
        opens::<Auto>("auto", &nexus, "both, chosen for each peer", what),
        between_processes(),
    ]
}

/// Makes a channel of shared memory as two processes of this host do. If they cannot, endpoints of
/// `auto` use UDP.
fn between_processes() -> Fact {
    let name = "shm, two processes";
    match channel() {
        Ok(()) => Fact::good(name, "works"),
        Err(why) => Fact::good(name, format!("fails, so auto uses UDP: {why}")).advise(
            false,
            "memory files must lie on a tmpfs, and `ulimit -n` and `ulimit -v` must leave room",
        ),
    }
}

fn channel() -> anyhow::Result<()> {
    let [mut client, mut server] = [
        Shm::open(ShmOptions::default())?,
        Shm::open(ShmOptions::default())?,
    ];
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    meet::<Shm>([&mut client, &mut server], &infos)?;
    Ok(())
}

fn opens<T: Open>(name: &'static str, nexus: &Nexus, good: &str, what: &str) -> Fact {
    match nexus.endpoint::<T, ()>(()) {
        Ok(_) => Fact::good(name, format!("works: {good}")),
        Err(why) => Fact::good(name, format!("cannot be opened: {why}")).missing(what),
    }
}

/// The default port of a nexus.
fn port() -> Fact {
    let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, DEFAULT_PORT)).is_ok();
    let state = if is_free { "free" } else { "taken" };
    Fact::good("port", format!("{DEFAULT_PORT} is {state}")).advise(
        is_free,
        format!(
            "a nexus takes another one if it may (`nexus.any_port`); `ss -ltnp 'sport = \
             :{DEFAULT_PORT}'` shows the process that has it"
        ),
    )
}

/// True if this user's sockets may have larger buffers than the system's limit.
fn can_force_buffers() -> bool {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    socket.is_ok_and(|socket| set_socket_recv_buffer_size_force(socket, 1 << 16).is_ok())
}

/// A socket buffer. Its limit does not apply to root, nor to a process with `CAP_NET_ADMIN`.
fn buffer(name: &'static str, file: &str, wanted: u32) -> Fact {
    let Some(most) = number(format!("/proc/sys/net/core/{file}")) else {
        return Fact::good(name, "the system does not report its limit");
    };
    let wanted = u64::from(wanted);
    let is_forced = can_force_buffers();
    let beyond = if is_forced {
        ", and this user may go beyond"
    } else {
        ""
    };
    let value = format!(
        "up to {}{beyond}; udp asks for {}",
        size(most),
        size(wanted)
    );
    Fact::good(name, value).advise(
        most >= wanted || is_forced,
        format!("bursts over UDP are lost: as root, `sysctl -w net.core.{file}={wanted}`"),
    )
}

fn offload(
    name: &'static str,
    since: &str,
    set: impl Fn(&UdpSocket) -> std::io::Result<()>,
) -> Fact {
    let tried = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| set(&socket));
    match tried {
        Ok(()) => Fact::good(name, "works"),
        Err(why) => Fact::good(name, format!("not in this kernel ({why})")).advise(
            false,
            format!("UDP works without it, with more system calls; Linux {since} has it"),
        ),
    }
}

/// The range of ports for UDP sockets of endpoints and for clients' connections.
fn ephemeral() -> Fact {
    let range = file("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range
        .split_whitespace()
        .filter_map(|end| end.parse::<u16>().ok());
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else {
        return Fact::good("chosen ports", "unknown");
    };
    let is_outside = !(first..=last).contains(&DEFAULT_PORT);
    Fact::good(
        "chosen ports",
        format!("{first} to {last}; UDP uses any of them unless udp.port is set"),
    )
    .advise(
        is_outside,
        format!(
            "the port of a nexus is among them and may be taken by a client: as root, `sysctl -w \
             net.ipv4.ip_local_reserved_ports={DEFAULT_PORT}`"
        ),
    )
}

/// Whether this process has a network namespace of its own: processes of this host outside it can
/// only use UDP.
fn namespaces() -> Fact {
    let ours = std::fs::read_link("/proc/self/ns/net").ok();
    let first = std::fs::read_link("/proc/1/ns/net").ok();
    let listen = Settings::default().listen();
    let value = match (ours, first) {
        (Some(ours), Some(first)) if ours != first => "of its own; processes outside use UDP",
        (Some(_), Some(_)) => "that of the system",
        _ => "unknown",
    };
    Fact::good(
        "network namespace",
        format!("{value}; programs listen at {listen} by default"),
    )
}
