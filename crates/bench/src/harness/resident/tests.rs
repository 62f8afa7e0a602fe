//! When a resident is started.

use anyhow::bail;

use super::*;

#[test]
fn a_resident_is_started_once_and_again_after_an_error() {
    let resident = Resident::new();
    let mut starts = 0;
    let mut start = || {
        starts += 1;
        Ok(starts)
    };
    assert_eq!(resident.with(&mut start, |it| Ok(*it)).unwrap(), 1);
    assert_eq!(resident.clone().with(&mut start, |it| Ok(*it)).unwrap(), 1);
    let failed: anyhow::Result<()> = resident.with(&mut start, |_| bail!("it has died"));
    assert!(failed.is_err());
    assert_eq!(resident.with(&mut start, |it| Ok(*it)).unwrap(), 2);
}
