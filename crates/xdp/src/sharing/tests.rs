//! A program that goes from one owner to another. Needs root.

use std::io::Read;

use dunlin_testkit::network::Network;

use super::*;

/// XDP programs at the interface of the calling thread's namespace.
fn programs() -> usize {
    let shown = std::process::Command::new("ip")
        .args(["-d", "link", "show", "link0"])
        .output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("link0"));
    shown.matches("prog/xdp").count()
}

#[test]
fn a_program_lives_as_long_as_any_of_its_owners() {
    let Some(network) = Network::new() else {
        return;
    };
    for mode in [Mode::Generic, Mode::Native] {
        network.left.run(|| {
            let index = ffi::interface_index(c"link0").unwrap();
            assert!(adopt(index).is_none());
            let first = Arc::new(Steering::load().unwrap());
            first.attach(index, mode).unwrap();
            let offer = Offer::make(index, mode, &first).unwrap();
            assert!(adopt(index + 1).is_none(), "another interface");
            let (second, its_mode) = adopt(index).unwrap();
            assert_eq!(its_mode, mode);
            drop(offer);
            assert!(adopt(index).is_none(), "the offer has ended");
            drop(first);
            assert_eq!(programs(), 1);
            drop(second);
            // Children of other tests may keep copies of the descriptor for a moment.
            let begin = std::time::Instant::now();
            while programs() > 0 {
                assert!(begin.elapsed() < 10 * PATIENCE);
            }
        });
    }
}

/// Makes the calling thread one of another user.
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
        let names = ffi::abstract_names().unwrap();
        let name = names.iter().find(|name| name.starts_with(&prefix(index)));
        let name = name.unwrap().clone();
        assert!(ask(&name).is_ok());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                become_another_user();
                assert!(adopt(index).is_none());
                let why = ask(&name).map(|_| ()).unwrap_err();
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
