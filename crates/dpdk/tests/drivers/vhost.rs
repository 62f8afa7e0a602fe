//! RPCs between a device of vhost and one of virtio_user, which share memory. vhost can be asked
//! for packets that it has sent, so it reads the data of long packets in the msgbufs; virtio_user
//! cannot, and gets copies.

use std::path::PathBuf;

use dunlin_dpdk::{Dpdk, DpdkRx};
use dunlin_testkit::wait::until;

use crate::echo::Echo;
use crate::{open, options, pair};

/// Fewest bytes that are lent.
const LEND: u32 = 256;

/// The socket at which two devices meet. Dropping this removes it.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Both devices, vhost first, and their socket.
fn devices(number: u8) -> (Socket, [String; 2]) {
    let name = format!("dunlin-dpdk-vhost-{}-{number}", std::process::id());
    let socket = Socket(std::env::temp_dir().join(name));
    let path = socket.0.display();
    let place = |last: u8| {
        let arguments = pair::ARGUMENTS;
        format!("ip=10.87.{number}.{last}/24,packets=16383,lend={LEND};{arguments}")
    };
    let devices = [
        format!("net_vhost{number},iface={path},queues=1;{}", place(1)),
        format!("net_virtio_user{number},path={path},queues=1;{}", place(2)),
    ];
    (socket, devices)
}

/// A counter of a device.
fn count(rx: &DpdkRx, name: &str) -> u64 {
    let details = rx.details();
    details.iter().find(|it| it.0 == name).unwrap().1
}

/// Calls in both directions, packed and not.
fn echo(number: u8, pack: bool) {
    let (_socket, devices) = devices(number);
    let watchers = devices.clone().map(|device| open(&device));
    let lent = || watchers.each_ref().map(|it| count(&it.rx, "tx_lent"));
    // virtio_user keeps what it has sent until it sends more.
    let empty = || count(&watchers[0].rx, "pool_empty");
    let before = empty();
    for is_vhost_client in [true, false] {
        let sent = lent();
        let [vhost, user] = devices.clone().map(|device| {
            let mut options = options(&device);
            options.udp.pack = pack;
            Dpdk::open(&options).unwrap()
        });
        let (near, far) = match is_vhost_client {
            true => (vhost, user),
            false => (user, vhost),
        };
        let mut echo = Echo::<Dpdk, Dpdk>::new(near, far);
        echo.all_lengths();
        echo.ends_soon();
        copies(&mut echo, is_vhost_client);
        drop(echo);
        let [vhost, user] = lent();
        // A call of 1 MB has some 700 packets each way.
        assert!(vhost - sent[0] > 5_000, "{} packets", vhost - sent[0]);
        assert_eq!(user, 0, "a device that does not answer gets copies");
        until(|| empty() == before);
    }
    // Between endpoints of one device, packets are copied.
    let mut within = Echo::<Dpdk, Dpdk>::new(open(&devices[0]), open(&devices[0]));
    within.calls(10, 1400);
    let copied = within.details("tx_copied_no_neighbour");
    assert!(copied[0] >= 10 && copied[1] >= 10, "{copied:?}");
}

/// Checks that each side names the cause for which it copied packets.
fn copies(echo: &mut Echo<Dpdk, Dpdk>, is_vhost_client: bool) {
    let [vhost, user] = if is_vhost_client { [0, 1] } else { [1, 0] };
    let short = echo.details("tx_copied_short");
    assert!(short[vhost] > 0 && short[user] == 0, "{short:?}");
    let device = echo.details("tx_copied_device");
    assert!(device[vhost] == 0 && device[user] > 5_000, "{device:?}");
    for name in ["tx_copied_off", "tx_copied_memory"] {
        assert_eq!(echo.details(name), [0, 0], "{name}");
    }
}

#[test]
#[ignore = "needs DPDK"]
fn data_of_long_packets_is_not_copied() {
    echo(1, false);
}

#[test]
#[ignore = "needs DPDK"]
fn data_of_long_packets_is_not_copied_when_short_ones_share_datagrams() {
    echo(2, true);
}
