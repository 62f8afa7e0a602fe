//! Endpoints at the two ends of a relay, which loses, swaps, changes, marks and tags frames.
//!
//! Each end of the relay is a raw socket (`packet(7)`) at the other end of a host's link, in a
//! namespace without addresses.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin_core::transport::{MAX_INLINE, Rx, Tx, TxItem};
use dunlin_msgbuf::BufRef;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_xdp::{Mode, Xdp};

use crate::ends::{Echo, End, at, meet};

/// Bytes of Ethernet and of a tag, and the place of IP's second byte.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// One of this many frames with UDP meets with a fault.
const EVERY: u64 = 7;

/// Treatment of the frames with UDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// One of [`EVERY`] is lost.
    Loss,
    /// One of [`EVERY`] goes after the next one.
    Swap,
    /// One of [`EVERY`] has another byte.
    Change,
    /// None, but a test may make the relay swallow all of them for a while.
    Hole,
    /// Each is marked "congestion experienced" (RFC 3168).
    Mark,
    /// Those to the right get the tag of VLAN 5, and those to the left lose it.
    Tag,
}

/// The Ethernet addresses of the left host and of the right one.
const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// Tells a host the address of a neighbour.
fn know(host: &Host, ip: &str, mac: &str) {
    let neighbour = format!("{ip} lladdr {mac} dev link0");
    host.ip(&format!("neigh replace {neighbour} nud permanent"))
        .unwrap();
}

/// A relay between two hosts. Dropping this value ends it.
struct Relay {
    left: Network,
    right: Network,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    ends: AtomicBool,
    /// Whether all frames with UDP are lost.
    swallows: AtomicBool,
    faults: AtomicU64,
}

impl Relay {
    fn new(fault: Fault) -> Option<Self> {
        let (left, right) = (Network::new()?, Network::new()?);
        let [near, far] = [&left.right, &right.left].map(|host| {
            host.ip("addr flush dev link0").unwrap();
            host.run(raw_socket).unwrap()
        });
        let hosts = [(&left.left, MACS[0]), (&right.right, MACS[1])];
        for (host, mac) in hosts {
            host.ip(&format!("link set link0 address {mac}")).unwrap();
        }
        // No packet goes through the kernel, which would leave its checksum to the device.
        know(&left.left, right.right.address, MACS[1]);
        know(&right.right, left.left.address, MACS[0]);
        let state = Arc::<State>::default();
        let shared = state.clone();
        let carry = move || Ends { near, far }.carry(fault, &shared);
        let thread = Some(std::thread::spawn(carry));
        Some(Self {
            left,
            right,
            state,
            thread,
        })
    }

    fn hosts(&self) -> [&Host; 2] {
        [&self.left.left, &self.right.right]
    }

    fn faults(&self) -> u64 {
        self.state.faults.load(Ordering::Relaxed)
    }

    /// An echo between the hosts.
    fn echo(&self) -> Echo<Xdp, Xdp> {
        let [left, right] = self.hosts();
        let near = End::open(left, 1, &at(left, false));
        Echo::new(near, End::open(right, 2, &at(right, false)))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A socket that gets all frames that come to `link0`, and can send any.
fn raw_socket() -> io::Result<OwnedFd> {
    /// `PACKET_IGNORE_OUTGOING`: frames that we send do not come back.
    const IGNORE_OUTGOING: libc::c_int = 23;
    let all = u16::try_from(libc::ETH_P_ALL).unwrap().to_be();
    let check = |rc: libc::c_int| match rc < 0 {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    };
    // SAFETY: numbers; the name ends with a zero byte; the option and the address are live, and
    // have the given lengths.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let fd = libc::socket(libc::AF_PACKET, kind, i32::from(all));
        check(fd)?;
        let fd = OwnedFd::from_raw_fd(fd);
        let on: libc::c_int = 1;
        let (level, len) = (libc::SOL_PACKET, size_of::<libc::c_int>());
        let len = libc::socklen_t::try_from(len).unwrap();
        let at = (&raw const on).cast();
        for option in [IGNORE_OUTGOING, libc::PACKET_AUXDATA] {
            check(libc::setsockopt(fd.as_raw_fd(), level, option, at, len))?;
        }
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
        address.sll_protocol = all;
        let index = libc::if_nametoindex(c"link0".as_ptr());
        address.sll_ifindex = i32::try_from(index).unwrap();
        let len = libc::socklen_t::try_from(size_of_val(&address)).unwrap();
        check(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len))?;
        Ok(fd)
    }
}

/// The sockets of a relay.
struct Ends {
    near: OwnedFd,
    far: OwnedFd,
}

impl Ends {
    fn carry(&self, fault: Fault, state: &State) {
        let mut room = vec![0; 1 << 16];
        // A frame that waits for the next one, in each direction.
        let mut held = [None, None];
        while !state.ends.load(Ordering::Relaxed) {
            let mut came = false;
            for (direction, from, to) in [(0, &self.near, &self.far), (1, &self.far, &self.near)] {
                let Some(frame) = receive(from, &mut room) else {
                    continue;
                };
                came = true;
                for frame in treat(fault, direction, frame, &mut held[direction], state) {
                    send(to, &frame);
                }
            }
            if !came {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
}

/// The next frame, as it was on the wire: the kernel takes a tag off before it shows the frame, and
/// reports it separately.
fn receive(fd: &OwnedFd, room: &mut [u8]) -> Option<Vec<u8>> {
    #[repr(align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    // SAFETY: the message leads to live memory of the given lengths, which is ours alone; the
    // kernel has filled in the control data when they are read.
    let (len, facts) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        let len = libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT);
        let len = usize::try_from(len).ok()?;
        let record = libc::CMSG_FIRSTHDR(&raw const message);
        let facts = libc::CMSG_DATA(record).cast::<libc::tpacket_auxdata>();
        (len, facts.read_unaligned())
    };
    let mut frame = room[..len].to_vec();
    if facts.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
        let [a, b] = facts.tp_vlan_tci.to_be_bytes();
        drop(frame.splice(12..12, [0x81, 0, a, b]));
    }
    Some(frame)
}

fn send(fd: &OwnedFd, frame: &[u8]) {
    // SAFETY: the bytes are live and only read.
    let sent = unsafe { libc::send(fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
    assert_eq!(sent, isize::try_from(frame.len()).unwrap());
}

/// The frames that leave in place of one that came.
fn treat(
    fault: Fault,
    direction: usize,
    mut frame: Vec<u8>,
    held: &mut Option<Vec<u8>>,
    state: &State,
) -> Vec<Vec<u8>> {
    if fault == Fault::Tag {
        match direction {
            0 => drop(frame.splice(12..12, [0x81, 0, 0, 5])),
            _ if frame[12..16] == [0x81, 0, 0, 5] => drop(frame.drain(12..12 + TAG)),
            // Frames of the interface itself, below that of the VLAN.
            _ => return Vec::new(),
        }
        return vec![frame];
    }
    let is_udp = frame[12..14] == [8, 0] && frame.get(ETHERNET + 9) == Some(&17);
    if !is_udp {
        return vec![frame];
    }
    if state.swallows.load(Ordering::Relaxed) {
        state.faults.fetch_add(1, Ordering::Relaxed);
        return Vec::new();
    }
    if fault == Fault::Hole {
        return vec![frame];
    }
    if fault == Fault::Mark {
        mark(&mut frame[ETHERNET..]);
        return vec![frame];
    }
    if let Some(first) = held.take() {
        return vec![frame, first];
    }
    if !(state.faults.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY) {
        return vec![frame];
    }
    match fault {
        Fault::Loss => Vec::new(),
        Fault::Swap => {
            *held = Some(frame);
            Vec::new()
        }
        _ => {
            *frame.last_mut().unwrap() ^= 0x10;
            vec![frame]
        }
    }
}

/// Sets both bits of ECN in an IPv4 header, and corrects its sum (RFC 1624).
fn mark(ip: &mut [u8]) {
    let word = |ip: &[u8], at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
    let before = word(ip, 0);
    ip[1] |= 0b11;
    let sum = u32::from(!word(ip, 10)) + u32::from(!before) + u32::from(word(ip, 0));
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = u16::try_from((sum & 0xFFFF) + (sum >> 16)).unwrap();
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
}

/// Makes calls of several lengths.
fn calls(echo: &mut Echo<Xdp, Xdp>) {
    for (count, len) in [(60, 32), (40, 1000), (10, 5000)] {
        echo.calls(count, len);
    }
}

#[test]
fn calls_survive_loss_and_reordering() {
    for fault in [Fault::Loss, Fault::Swap] {
        let Some(relay) = Relay::new(fault) else {
            return;
        };
        let mut echo = relay.echo();
        calls(&mut echo);
        assert!(relay.faults() > 10 * EVERY, "{fault:?}");
        assert!(echo.far("rx_datagrams") > 40, "{fault:?}");
        let resent = echo.client.counters().retransmissions;
        assert!(fault == Fault::Swap || resent > 0);
    }
}

#[test]
fn calls_survive_a_black_hole() {
    let Some(relay) = Relay::new(Fault::Hole) else {
        return;
    };
    let mut echo = relay.echo();
    calls(&mut echo);
    assert_eq!(relay.faults(), 0);
    relay.state.swallows.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // At most four calls are in flight, each with one packet, so most of these are repeats.
            until(|| relay.faults() > 12);
            relay.state.swallows.store(false, Ordering::Relaxed);
        });
        echo.calls(20, 32);
    });
    assert!(relay.faults() > 0);
    assert!(echo.client.counters().retransmissions > 0);
    calls(&mut echo);
}

#[test]
fn changed_packets_are_refused_and_sent_again() {
    let Some(relay) = Relay::new(Fault::Change) else {
        return;
    };
    let mut echo = relay.echo();
    calls(&mut echo);
    let refused = echo.near("rx_wrong_sum") + echo.far("rx_wrong_sum");
    assert!(refused > 10, "{refused}");
    for other in ["rx_malformed_ip", "rx_truncated", "rx_foreign_address"] {
        assert_eq!(echo.far(other), 0, "{other}");
    }
}

#[test]
fn marks_of_congestion_arrive() {
    for fault in [Fault::Mark, Fault::Swap] {
        let Some(relay) = Relay::new(fault) else {
            return;
        };
        let [left, right] = relay.hosts();
        let mut near = End::<Xdp>::open(left, 1, &at(left, false));
        let mut far = End::<Xdp>::open(right, 2, &at(right, false));
        let [to_far, _] = meet(&mut near, &mut far);
        let item = TxItem {
            peer: to_far,
            inline_len: 24,
            inline: [7; MAX_INLINE],
            data: BufRef::EMPTY,
        };
        let mut marked = Vec::new();
        let begin = std::time::Instant::now();
        while far.detail("rx_datagrams") < 5 && begin.elapsed() < Duration::from_secs(10) {
            near.halves.tx.burst(&[item]);
            near.halves.tx.settle();
            std::thread::sleep(Duration::from_millis(1));
            let before = far.detail("rx_datagrams");
            let count = far.halves.rx.burst();
            if far.detail("rx_datagrams") > before {
                marked.extend((0..count).map(|at| far.halves.rx.frame(at).congestion));
            }
        }
        assert!(marked.len() >= 5);
        assert!(
            marked
                .iter()
                .all(|marked| *marked == (fault == Fault::Mark))
        );
    }
}

#[test]
fn frames_that_a_switch_has_tagged_arrive() {
    for mode in [Mode::Generic, Mode::Native] {
        let Some(relay) = Relay::new(Fault::Tag) else {
            return;
        };
        let [left, right] = relay.hosts();
        let near = End::open(left, 1, &at(left, false));
        let mut tagged = at(right, false);
        tagged.vlan = Some(5);
        tagged.mode = mode;
        let mut echo: Echo<Xdp, Xdp> = Echo::new(near, End::open(right, 2, &tagged));
        calls(&mut echo);
        assert!(echo.far("rx_datagrams") > 40, "{mode:?}");
        assert!(echo.far("tx_datagrams") > 40, "{mode:?}");
        assert_eq!(echo.far("rx_foreign_vlan"), 0);
    }
}
