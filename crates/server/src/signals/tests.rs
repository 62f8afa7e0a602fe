//! A signal that comes while signals are being caught.

use std::sync::mpsc;
use std::time::Duration;

use signal_hook::consts::SIGTERM;
use signal_hook::low_level::raise;

use super::{Caught, arm};

/// The only test of this process that raises a signal: a second one would end the process.
#[test]
fn a_signal_before_the_wait_is_not_lost() {
    arm().unwrap();
    raise(SIGTERM).unwrap();
    let caught = Caught::listen().unwrap();
    let (sender, waited) = mpsc::channel();
    std::thread::spawn(move || {
        caught.wait();
        sender.send(())
    });
    assert_eq!(waited.recv_timeout(Duration::from_secs(10)), Ok(()));
}
