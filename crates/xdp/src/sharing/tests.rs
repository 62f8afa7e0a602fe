//! A program that passes from one process to another. Needs root.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use dunlin_testkit::network::Network;
use dunlin_testkit::wait::until;

use super::*;

/// The time by which an offer must be answered.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// Asks the process at this name, and waits for its answer.
fn answer_at(name: &[u8], index: u32) -> io::Result<(Steering, Mode)> {
    let stream = ask(name, descriptors::user())?;
    let end = soon();
    loop {
        match answer_of(stream.as_fd(), index) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            other => return other,
        }
    }
}

#[test]
fn a_program_lives_as_long_as_any_of_its_owners() {
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        network.left.run(|| {
            let index = ffi::interface_index(c"link0").unwrap();
            assert!(adopt(index, soon()).is_none());
            let first = Arc::new(Steering::load().unwrap());
            first.attach(index, mode).unwrap();
            let offer = Offer::make(index, mode, &first).unwrap();
            assert!(adopt(index + 1, soon()).is_none(), "another interface");
            let strange = Offer::make(index + 1, mode, &first).unwrap();
            assert!(adopt(index + 1, soon()).is_none(), "the link is elsewhere");
            drop(strange);
            let held = first.link().unwrap();
            let [homes, sockets, places, program, link] = first
                .descriptors(&held)
                .map(|fd| fd.try_clone_to_owned().unwrap());
            drop(held);
            let swapped = Steering::of([homes, places, sockets, program, link], index);
            assert_eq!(swapped.unwrap_err().kind(), io::ErrorKind::InvalidData);
            let (second, its_mode) = adopt(index, soon()).unwrap();
            assert_eq!(its_mode, mode);
            drop(offer);
            assert!(adopt(index, soon()).is_none(), "the offer has ended");
            drop(first);
            assert_eq!(network.left.xdp_programs(), 1);
            drop(second);
            until(|| network.left.xdp_programs() == 0);
        });
    }
}

/// Changes the effective user of the calling thread.
fn become_another_user() {
    let keep = -1;
    // SAFETY: takes numbers, and the bare call changes this thread alone.
    let rc = unsafe { libc::syscall(libc::SYS_setresuid, keep, 65_534, keep) };
    assert_eq!(rc, 0);
}

#[test]
fn another_user_gets_nothing_and_is_not_trusted() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.run(|| {
        let index = ffi::interface_index(c"link0").unwrap();
        let steering = Arc::new(Steering::load().unwrap());
        steering.attach(index, Mode::Generic).unwrap();
        let _offer = Offer::make(index, Mode::Generic, &steering).unwrap();
        let prefix = prefix(descriptors::user(), index).into_bytes();
        let names = ffi::listening_names().unwrap();
        let name = names.iter().find(|name| name.starts_with(&prefix));
        let name = name.unwrap().clone();
        assert!(answer_at(&name, index).is_ok());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                become_another_user();
                assert!(adopt(index, soon()).is_none());
                let why = ask(&name, 65_534).map(|_| ()).unwrap_err();
                assert_eq!(why.kind(), io::ErrorKind::PermissionDenied);
                // The offering process checks as well.
                let mut stream = UnixStream::connect_addr(&address).unwrap();
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                assert_eq!(got, []);
            });
            other.join().unwrap();
        });
    });
}

#[test]
fn sockets_that_do_not_answer_delay_nothing() {
    let Some(network) = Network::new() else {
        return;
    };
    network.left.run(|| {
        let index = ffi::interface_index(c"link0").unwrap();
        let prefix = prefix(descriptors::user(), index);
        // Names that sort before and after the name of the offer; one of them is not UTF-8.
        let strange = [prefix.as_bytes(), b"\xFF\xFE"].concat();
        let silent = [format!("{prefix}/").into_bytes(), strange].map(|name| {
            let address = SocketAddr::from_abstract_name(name).unwrap();
            UnixListener::bind_addr(&address).unwrap()
        });
        // One of them has room for no connection.
        let address = silent[0].local_addr().unwrap();
        let name = address.as_abstract_name().unwrap();
        // SAFETY: takes numbers.
        let rc = unsafe { libc::listen(silent[0].as_raw_fd(), 0) };
        assert_eq!(rc, 0);
        let mut waiting = Vec::new();
        while let Ok(stream) = descriptors::connect(name) {
            waiting.push(stream);
        }
        let deaf = SocketAddr::from_abstract_name(format!("{prefix}deaf")).unwrap();
        let _deaf = UnixDatagram::bind_addr(&deaf).unwrap();
        // Each name comes once, and only sockets that listen have one.
        assert_eq!(ffi::listening_names().unwrap().len(), 2);
        let begin = Instant::now();
        assert!(adopt(index, begin + Duration::from_millis(50)).is_none());
        assert!(begin.elapsed() >= Duration::from_millis(50));
        assert!(begin.elapsed() < Duration::from_secs(4));
        let steering = Arc::new(Steering::load().unwrap());
        steering.attach(index, Mode::Generic).unwrap();
        let _offers = [(); 2].map(|()| Offer::make(index, Mode::Generic, &steering).unwrap());
        assert!(adopt(index, soon()).is_some());
        assert!(Instant::now() < begin + Duration::from_secs(4));
    });
}
