//! A `Server` and channels whose settings name a transport past the kernel for peers of other
//! hosts.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use dunlin::service::{Context as Call, Postcard};
use dunlin::{Hub, Settings, service};
use dunlin_testkit::network::Network;

use super::dpdk::{ALLOW, device};
use super::xdp::datagrams;
use super::{Running, objects, run, text};

/// Calls of each length.
const CALLS: u32 = 50;

#[service(codec = Postcard)]
trait Echo {
    #[method(1)]
    fn echo(bytes: Vec<u8>) -> Vec<u8>;
}

struct Echoes;

impl Echo for Echoes {
    async fn echo(&self, bytes: Vec<u8>, _: Call<'_>) -> Vec<u8> {
        bytes
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut cx) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn settings(options: &[(&str, &str)]) -> Settings {
    let none = Settings::default();
    let set = |settings: Settings, (name, value): &(&str, &str)| settings.with(name, value);
    options.iter().try_fold(none, set).unwrap()
}

fn serve(settings: &Settings, at: &str) -> dunlin::Running {
    let server = settings.server().service(|_| EchoServer(Echoes));
    server.start(at).unwrap()
}

/// Calls a server from a channel of a hub with these settings.
fn call(settings: &Settings, server: &dunlin::Running) -> Hub {
    let hub = settings.hub().start().unwrap();
    let channel = hub.channel().address(server.address().to_string()).open();
    let client = EchoClient::over(channel.unwrap());
    for len in [32, 3000] {
        for number in 0..CALLS {
            let bytes = vec![number.to_le_bytes()[0]; len];
            assert_eq!(wait(client.echo(&bytes)).unwrap(), bytes);
        }
    }
    hub
}

#[test]
fn servers_and_channels_use_xdp_for_peers_of_other_hosts() {
    let Some(network) = Network::new() else {
        return;
    };
    let hosts = [&network.left, &network.right];
    let listen = format!("{}:0", network.right.address);
    for names in [
        ["xdp:link0", "xdp:link0:0"],
        ["xdp:link0", "udp"],
        ["udp", "xdp:link0"],
    ] {
        let [near, far] = names.map(|name| settings(&[("auto.remote", name)]));
        let before = hosts.map(datagrams);
        let server = network.right.run(|| serve(&far, &listen));
        let hub = network.left.run(|| call(&near, &server));
        for (side, name) in names.into_iter().enumerate() {
            let delivered = datagrams(hosts[side]) - before[side];
            // The kernel delivers the first packets, which come before it knows the neighbour.
            let is_udp = delivered > 2 * u64::from(CALLS);
            assert_eq!(is_udp, name == "udp", "{names:?}: {delivered}");
            assert!(is_udp || delivered < 20, "{names:?}: {delivered}");
        }
        drop(hub);
        assert_eq!(server.drain().cut_off, 0);
    }
}

#[test]
fn stats_show_the_transport_that_settings_have_named() {
    let Some(network) = Network::new() else {
        return;
    };
    let listen = format!("{}:0", network.right.address);
    let options = ["--set", "auto.remote=xdp:link0"];
    let serve = ["echo-server", &listen, "--json"];
    let start = || Running::start(&[&serve[..], &options].concat());
    let mut server = network.right.run(start);
    let address = server.line()["listening"].as_str().unwrap().to_owned();
    let ping = ["ping", "-c", "20", "-i", "5ms", "--json", &address];
    let out = network.left.run(|| run(&[&ping[..], &options].concat()));
    assert_eq!(objects(&out.stdout).pop().unwrap()["answered"], 20);
    let out = run(&["stats", &server.child.id().to_string(), "--json"]);
    let endpoint = &objects(&out.stdout)[0]["endpoints"][0];
    assert_eq!(endpoint["transport"], "shm+xdp", "{endpoint}");
    let received = endpoint["transport_counters"]["rx_datagrams"].as_u64();
    assert!(received >= Some(20), "{endpoint}");
}

#[test]
fn a_transport_that_cannot_be_opened_is_named() {
    for (name, said) in [
        ("xdp:nothing0", "nothing0"),
        ("xdp:", "lacks the name of an interface"),
        ("shm", "neither udp, nor xdp, nor dpdk"),
    ] {
        let option = format!("auto.remote={name}");
        let out = run(&["echo-server", "127.0.0.1:0", "--set", &option]);
        assert!(!out.status.success(), "{name}");
        let error = text(&out.stderr);
        assert!(error.contains(said), "{name}: {error}");
    }
}

#[test]
#[ignore = "needs DPDK"]
fn servers_and_channels_use_dpdk_for_peers_of_other_hosts() {
    let ends = [1, 2].map(|number| {
        // Both devices belong to this process, so their names must differ.
        let device = device("faces", number).replace("memif0", &format!("memif{number}"));
        let [_, allow] = ALLOW.map(|option| option.split_once('=').unwrap_or_default());
        // Without a UNIX socket, both nexuses take each other for processes of two hosts.
        settings(&[
            ("auto.remote", &device),
            allow,
            ("nexus.without_unix", "on"),
        ])
    });
    // Nothing but the devices leads from one of their addresses to the other.
    let server = serve(&ends[0], "127.0.0.1:0");
    let hub = call(&ends[1], &server);
    drop(hub);
    assert_eq!(server.drain().cut_off, 0);
}
