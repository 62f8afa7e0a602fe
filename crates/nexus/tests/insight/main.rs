//! A process that shows itself is read from elsewhere as it is read here; one that hides says so.

use dunlin_insight::{ReadError, Remote, Snapshot};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_transport::shm::Shm;

#[test]
fn the_same_is_read_over_the_control_plane() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let _endpoint: Rpc<Shm, ()> = nexus.endpoint(()).unwrap();
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let there = Snapshot::read(&mut remote).unwrap();
    let here = nexus.snapshot().unwrap();
    assert_eq!(there.endpoints, here.endpoints);
    assert_eq!((there.pid, there.address), (here.pid, here.address));
}

#[test]
fn who_hides_has_nothing_to_read() {
    let nexus = Nexus::builder().hidden(true).bind("127.0.0.1:0").unwrap();
    assert!(nexus.snapshot().is_none());
    let mut remote = Remote::connect(&nexus.address().to_string()).unwrap();
    let error = Snapshot::read(&mut remote).unwrap_err();
    assert!(matches!(error, ReadError::Truncated { at: 0 }), "{error}");
}
