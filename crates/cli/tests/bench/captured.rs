//! tshark captures and dissects the frames of an endpoint that bypasses the kernel, at the other
//! end of its link, where the kernel has the interface. It finds the same packets in the file that
//! `dunlin trace` writes for the endpoint. These tests need root, `ip` and tshark.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::skip;
use dunlin_testkit::wait::until;
use serde_json::Value;

use super::command::signal;
use super::turns::alone;
use super::wireshark::{dissect, number, packets, temporary};
use super::{dunlin, text};

/// The port of the endpoint, which the dissector knows.
const PORT: u64 = 31_850;
/// Bytes of each message.
const LEN: u64 = 10_000;
/// No wait takes this long unless a test fails, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// A datagram to a port at which nothing listens. A capture has frames in order, so a capture with
/// this datagram has all frames before it.
const LAST: &[u8] = b"the last frame of the capture";
const DISCARD: u16 = 9;

const REQ: u64 = 0;
const RESP: u64 = 3;

/// A process that is killed with this value.
struct Process(Child);

impl Process {
    fn start(host: &Host, command: &mut Command) -> Self {
        Self(host.run(|| command.spawn().unwrap()))
    }

    /// Ends the process with the signal that Ctrl-C sends.
    fn finish(mut self) {
        signal(self.0.id(), "-INT");
        let ended = self.0.wait().unwrap();
        assert!(ended.success(), "{ended}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An echo server in a namespace, and its address.
fn serve(host: &Host, listen: &str, transport: &str) -> (Process, String) {
    let port = format!("udp.port={PORT}");
    let args = ["echo-server", listen, "--json", "--transport", transport];
    let set = ["--set", &port, "--set", "nexus.allow_peers=10.79.0.0/24"];
    let mut command = dunlin(&[&args[..], &set].concat());
    let mut server = Process::start(host, command.stderr(Stdio::inherit()));
    let mut line = String::new();
    let mut out = BufReader::new(server.0.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    (server, line["listening"].as_str().unwrap().to_owned())
}

/// Calls the server over the kernel's UDP, without frames that hold several datagrams.
fn call(host: &Host, address: &str) {
    let ping = ["ping", "-c", "5", "-i", "10ms", "-s", "10000", "--json"];
    let over = ["--transport", "udp", "--set", "udp.ip=10.79.0.1", "--set"];
    let rest = ["udp.gso=off", "--set", "udp.gro=off", "--set"];
    let allow = ["nexus.allow_peers=10.79.0.0/24", address];
    let args = [&ping[..], &over, &rest, &allow].concat();
    let out = host.run(|| dunlin(&args).output().unwrap());
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// Captures the frames of the endpoint at an end of the link. `None` without tshark.
fn capture(host: &Host, path: &Path) -> Option<Process> {
    let _ = std::fs::remove_file(path);
    let filter = format!("udp port {PORT} or udp port {DISCARD}");
    let mut command = Command::new("tshark");
    command
        .args(["-q", "-i", "link0", "-f", &filter, "-w"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if Command::new("tshark").arg("-v").output().is_err() {
        skip("there is no tshark");
        return None;
    }
    Some(Process::start(host, &mut command))
}

/// A packet of a message: session at its receiver, number of the call, and number in the message.
/// The token would distinguish a session from an earlier one with the same number, but it is zero
/// in a trace.
type Name = [u64; 3];

/// Type and name of each packet of a message.
type Packets = BTreeSet<(u64, Name)>;

const NAME: [&str; 3] = ["session", "req", "packet"];

fn of_messages<'a>(found: impl IntoIterator<Item = &'a Value>) -> Packets {
    let mut all = Packets::new();
    for packet in found {
        assert!(packet["dunlin.refused"].is_null(), "{packet}");
        let field = |name: &str| number(&packet[name]);
        if packet["dunlin.message_size"].is_null() || field("dunlin.message_size") != LEN {
            continue;
        }
        let name = NAME.map(|part| field(&format!("dunlin.{part}")));
        all.insert((field("dunlin.type"), name));
    }
    all
}

/// Sends the datagram that marks the end of the capture.
fn mark_end(to: &Host) {
    let socket = UdpSocket::bind("10.79.0.1:0").unwrap();
    socket.send_to(LAST, (to.address, DISCARD)).unwrap();
}

/// Whether a file of captured frames has the last one.
fn has_end(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(LAST.len()).any(|part| part == LAST)
}

/// The packets in a file of captured frames. Checks that requests go to the server, and responses
/// to the client.
fn captured(path: &Path) -> Option<Packets> {
    let frames = dissect(path, "udp dunlin", &[])?;
    let mut all = Packets::new();
    for frame in &frames {
        let found = of_messages(packets(frame));
        let to_server = number(&frame["udp"]["udp.dstport"]) == PORT;
        let wanted = if to_server { REQ } else { RESP };
        let is_right = found.iter().all(|(kind, _)| *kind == wanted);
        assert!(is_right, "{frame}");
        all.extend(found);
    }
    Some(all)
}

/// The packets in a file of `dunlin trace` about the server.
fn traced(path: &Path) -> Packets {
    let frames = dissect(path, "dunlin", &[]).expect("there is tshark");
    of_messages(frames.iter().flat_map(packets))
}

/// Checks the frames of a server over this transport, which listens at this address.
fn dissects(network: &Network, name: &str, listen: &str, transport: &str) {
    let _alone = alone();
    let [on_wire, at_endpoint] =
        ["wire", "endpoint"].map(|end| temporary(&format!("captured-{name}-{end}.pcapng")));
    let (server, address) = serve(&network.right, listen, transport);
    let Some(capturing) = capture(&network.left, &on_wire) else {
        return;
    };
    let _ = std::fs::remove_file(&at_endpoint);
    let pid = server.0.id().to_string();
    let trace = ["trace", &pid, "-o", at_endpoint.to_str().unwrap()];
    let tracing = Process::start(&network.right, &mut dunlin(&trace));
    let has = |path: &Path, bytes| std::fs::metadata(path).is_ok_and(|file| file.len() > bytes);
    let deadline = Instant::now() + LIMIT;
    // Both begin at some time during the calls. A trace has the first bytes of each packet.
    while !has(&on_wire, 100_000) || !has(&at_endpoint, 10_000) {
        assert!(Instant::now() < deadline, "nothing is captured");
        call(&network.left, &address);
    }
    // A tracer writes its last packets when it ends; tshark loses packets that it has not written.
    network.left.run(|| mark_end(&network.right));
    until(|| has_end(&on_wire));
    capturing.finish();
    tracing.finish();
    let (on_wire, at_endpoint) = (captured(&on_wire).unwrap(), traced(&at_endpoint));
    let both: Vec<_> = on_wire.intersection(&at_endpoint).collect();
    for kind in [REQ, RESP] {
        // A message has several packets.
        let count = both.iter().filter(|(it, _)| *it == kind).count();
        assert!(count > 20, "{count} of type {kind} in both");
    }
    drop(server);
}

#[test]
fn wireshark_reads_what_was_captured_and_traced_of_an_endpoint_over_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    let listen = format!("{}:0", network.right.address);
    dissects(&network, "xdp", &listen, "xdp:link0");
}

#[test]
#[ignore = "needs DPDK"]
fn wireshark_reads_what_was_captured_and_traced_of_an_endpoint_over_dpdk() {
    let Some(network) = Network::new() else {
        return;
    };
    // The control plane has a link of its own.
    network.link_further("10.80.0");
    network.right.ip("addr flush dev link0").unwrap();
    network.left.write_sums();
    let device = "dpdk:net_af_xdp0,iface=link0;ip=10.79.0.2/24;--no-huge -m 256";
    dissects(&network, "dpdk", "10.80.0.2:0", device);
}
