//! Opening and closing: refused options, and the state that is left in the kernel.

use std::io::ErrorKind;

use dunlin_core::transport::Halves;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_xdp::steering::Steering;
use dunlin_xdp::{Mode, Options, Xdp, XdpRx, XdpTx};

use crate::ends::{End, at};

fn refused(host: &Host, options: &Options) -> std::io::Error {
    host.run(|| Xdp::open(options).map(|_| ()).unwrap_err())
}

#[test]
fn the_interface_is_left_as_it_was() {
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        let options = Options {
            mode,
            ..at(&network.left, false)
        };
        let before = network.left.link();
        // Each half keeps all that it needs; when the last half goes, everything ends.
        let end = End::<Xdp>::open(&network.left, 1, &options);
        assert_eq!(network.left.xdp_programs(), 1);
        drop(end.halves.rx);
        assert_eq!(network.left.xdp_programs(), 1);
        drop(end.halves.tx);
        until(|| network.left.xdp_programs() == 0);
        assert_eq!(network.left.link(), before, "{mode:?}");
    }
}

#[test]
fn a_strangers_program_is_named_and_stays() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.left;
    for strangers in [Mode::Generic, Mode::Native] {
        // A program that no process offers, in either mode.
        let stranger = host.run(|| {
            let stranger = Steering::load().unwrap();
            let index = std::ffi::CString::new("link0").unwrap();
            // SAFETY: the name ends with a zero.
            let index = unsafe { libc::if_nametoindex(index.as_ptr()) };
            stranger.attach(index, strangers).unwrap();
            stranger
        });
        let its = host.xdp_program();
        assert!(its.is_some());
        let before = host.link();
        for mode in [Mode::Generic, Mode::Native] {
            let options = Options {
                mode,
                ..at(host, false)
            };
            let why = refused(host, &options);
            assert_eq!(why.kind(), ErrorKind::ResourceBusy, "{why}");
            let said = "the interface has an XDP program of another process";
            assert!(why.to_string().contains(said), "{why}");
            assert_eq!(host.link(), before);
        }
        assert_eq!(host.xdp_program(), its);
        drop(stranger);
        until(|| host.xdp_programs() == 0);
    }
    drop(End::<Xdp>::open(host, 1, &at(host, false)));
}

#[test]
fn an_endpoint_that_does_not_open_says_why_and_leaves_nothing() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.left;
    let good = at(host, false);
    let other = |change: &dyn Fn(&mut Options)| {
        let mut options = good.clone();
        change(&mut options);
        refused(host, &options)
    };
    let missing = other(&|options| options.interface = "link7".to_owned());
    assert!(
        missing.to_string().contains("no interface \"link7\""),
        "{missing}"
    );
    let queue = other(&|options| options.queue = 77);
    assert!(queue.to_string().contains("no queue 77"), "{queue}");
    let second = other(&|options| options.queues = 2);
    assert!(second.to_string().contains("no queue 1"), "{second}");
    let none = other(&|options| options.queues = 0);
    assert_eq!(none.kind(), ErrorKind::InvalidInput, "{none}");
    let copies = other(&|options| options.zero_copy = true);
    assert!(copies.to_string().contains("mode = native"), "{copies}");
    let copies = other(&|options| (options.zero_copy, options.mode) = (true, Mode::Native));
    assert!(copies.to_string().contains("no zero-copy mode"), "{copies}");
    let loopback = other(&|options| options.interface = "lo".to_owned());
    assert_eq!(loopback.kind(), ErrorKind::InvalidInput, "{loopback}");
    let own = other(&|options| options.udp.ip = [127, 0, 0, 1].into());
    assert!(own.to_string().contains("that other hosts reach"), "{own}");
    host.ip("-4 addr flush dev link0").unwrap();
    let none = other(&|options| options.udp.ip = [0; 4].into());
    assert!(
        none.to_string().contains("that other hosts reach"),
        "{none}"
    );
    host.ip(&format!("addr add {}/24 dev link0", host.address))
        .unwrap();
    let small = other(&|options| options.umem_bytes = 4096);
    assert!(
        small.to_string().contains("a region of frames for 4"),
        "{small}"
    );
    until(|| host.xdp_programs() == 0);
    let alone = Options {
        endpoints: 1,
        ..good.clone()
    };
    let end = End::<Xdp>::open(host, 1, &alone);
    let taken = refused(host, &good);
    assert_eq!(taken.kind(), ErrorKind::ResourceBusy, "{taken}");
    assert_eq!(host.xdp_programs(), 1);
    drop(end);
    drop(End::<Xdp>::open(host, 1, &good));
    until(|| host.xdp_programs() == 0);
}

/// Takes the right to pin any memory (`CAP_IPC_LOCK`) from the calling thread, and sets the limit
/// for threads without that right.
fn limit_pinning(bytes: u64) {
    let mut header = [0x2008_0522_u32, 0];
    // Effective, permitted and inheritable, the lower half of each first.
    let mut sets = [0_u32; 6];
    // SAFETY: version 3 of the interface, the calling thread, and room for both halves.
    let rc = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) };
    assert_eq!(rc, 0);
    sets[0] &= !(1 << 14);
    // SAFETY: as above; it concerns this thread alone.
    let rc = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) };
    assert_eq!(rc, 0);
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: one live `rlimit`.
    let rc = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    assert_eq!(rc, 0);
    limit.rlim_cur = bytes.min(limit.rlim_max);
    // SAFETY: as above. Threads with the right are not concerned.
    let rc = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
    assert_eq!(rc, 0);
}

#[test]
fn a_region_is_as_large_as_may_be_pinned() {
    let Some(network) = Network::with_queues(3) else {
        return;
    };
    let options = |queue, umem_bytes| Options {
        queue,
        umem_bytes,
        endpoints: 1,
        ..at(&network.left, false)
    };
    let open = |limit, options: &Options| {
        network.left.run(|| {
            limit_pinning(limit);
            Xdp::open(options)
        })
    };
    let size = |halves: &Halves<XdpRx, XdpTx>| {
        let details = halves.rx.details();
        let size = details.iter().find(|(name, _)| *name == "umem_bytes");
        size.unwrap().1
    };
    // The kernel counts the pages of a closed region for a while.
    let opened = |options: &Options, bytes| {
        let begin = std::time::Instant::now();
        loop {
            let halves = open(2 << 20, options).unwrap();
            if size(&halves) == bytes || begin.elapsed() > std::time::Duration::from_secs(10) {
                assert_eq!(size(&halves), bytes);
                return halves;
            }
        }
    };
    // Regions of half of the limit, of the size that is asked for, and of half of that size.
    drop(opened(&options(0, 8 << 20), 1 << 20));
    let first = opened(&options(0, 5 << 18), 5 << 18);
    let second = opened(&options(1, 5 << 18), 5 << 17);
    let refused = open(2 << 20, &options(2, 5 << 18)).map(|_| ()).unwrap_err();
    let why = refused.to_string();
    assert!(why.contains("RLIMIT_MEMLOCK is 2097152 bytes"), "{why}");
    assert!(why.contains("xdp.endpoints"), "{why}");
    drop((first, second));
    until(|| network.left.xdp_programs() == 0);
}

/// The environment variable of the child, which opens an endpoint and waits to be killed.
const CHILD: &str = "DUNLIN_XDP_CHILD";

#[test]
fn a_killed_process_leaves_the_interface_as_it_was() {
    if let Ok(mode) = std::env::var(CHILD) {
        let options = Options {
            interface: "link0".to_owned(),
            umem_bytes: 4 << 20,
            mode: match &*mode {
                "Native" => Mode::Native,
                _ => Mode::Generic,
            },
            udp: dunlin_transport::udp::Options {
                ip: [10, 79, 0, 1].into(),
                ..Default::default()
            },
            ..Options::default()
        };
        let _halves = Xdp::open(&options).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        let before = network.left.link();
        let mut child = network.left.run(|| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "life::a_killed_process_leaves_the_interface_as_it_was",
                ])
                .env(CHILD, format!("{mode:?}"))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        });
        until(|| network.left.xdp_programs() == 1);
        child.kill().unwrap();
        child.wait().unwrap();
        until(|| network.left.xdp_programs() == 0);
        // Its flags, MTU, promiscuity, queues and limits.
        assert_eq!(network.left.link(), before, "{mode:?}");
        drop(End::<Xdp>::open(
            &network.left,
            1,
            &at(&network.left, false),
        ));
        until(|| network.left.xdp_programs() == 0);
    }
}
