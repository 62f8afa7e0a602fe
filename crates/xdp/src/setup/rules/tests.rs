//! The life of rules, at a device that these tests play: no device here has rules.

use std::collections::BTreeMap;

use super::entry::tests as bytes;
use super::*;

/// The behaviour of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::setup) enum How {
    /// It chooses places, or lets the caller choose among four.
    Chooses,
    Four,
    /// It has no rules.
    Refuses,
    /// It accepts each rule, and makes it for another queue.
    Lies,
}

/// A device.
#[derive(Debug)]
pub(in crate::setup) struct Played {
    how: How,
    /// By their places.
    rules: Mutex<BTreeMap<u32, Vec<u8>>>,
}

impl Played {
    pub(in crate::setup) fn new(how: How) -> Arc<Self> {
        Arc::new(Self {
            how,
            rules: Mutex::default(),
        })
    }

    fn rules(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<u8>>> {
        self.rules.lock().unwrap()
    }

    /// Address and queue of each rule, by its place.
    pub(in crate::setup) fn shown(&self) -> Vec<(u32, String, u32)> {
        let rules = self.rules();
        let shown = rules.iter().map(|(place, rule)| {
            let mut command = entry::about(ONE, *place);
            bytes::set_rule(&mut command, rule);
            let entry = FlowRule::of(&command).unwrap();
            (*place, entry.to.to_string(), entry.queue)
        });
        shown.collect()
    }

    fn make(&self, command: &mut [u8]) -> io::Result<()> {
        let mut rules = self.rules();
        let place = match bytes::place(command) {
            ANYWHERE if self.how != How::Four => {
                let mut places = 100..;
                places.find(|place| !rules.contains_key(place)).unwrap()
            }
            place if self.how == How::Four && place < 4 => place,
            _ => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        };
        bytes::set_place(command, place);
        let mut kept = command.to_vec();
        if self.how == How::Lies {
            bytes::set_queue(&mut kept, 77);
        }
        rules.insert(place, bytes::rule(&kept).to_vec());
        Ok(())
    }
}

impl Drivers for Played {
    fn ask(&self, _index: u32, command: &mut [u8]) -> io::Result<()> {
        if self.how == How::Refuses {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let absent = || io::Error::from_raw_os_error(libc::ENOENT);
        let place = bytes::place(command);
        match u32::from_ne_bytes(*command.first_chunk().unwrap()) {
            COUNT => {
                let chooses = if self.how == How::Four { 0 } else { 1 << 31 };
                let count = u32::try_from(self.rules().len()).unwrap();
                bytes::set_count(command, count, chooses);
            }
            ALL => {
                let places: Vec<_> = self.rules().keys().copied().collect();
                bytes::set_places(command, &places, 4);
            }
            ONE => {
                let rules = self.rules();
                bytes::set_rule(command, rules.get(&place).ok_or_else(absent)?);
                bytes::set_place(command, place);
            }
            END => drop(self.rules().remove(&place).ok_or_else(absent)?),
            entry::MAKE => self.make(command)?,
            other => panic!("command {other}"),
        }
        Ok(())
    }
}

const INDEX: u32 = 3;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_rule_lives_as_long_as_its_endpoint() {
    for (how, places) in [(How::Chooses, [100, 101]), (How::Four, [3, 2])] {
        let device = Played::new(how);
        let rules = Arc::new(Rules::over(device.clone()));
        let [one, two] = ["10.0.0.1:31900", "[fd79::1]:31901"];
        let first = rules.steer(INDEX, address(one), 2).unwrap();
        let second = rules.steer(INDEX, address(two), 3).unwrap();
        let mut wanted = vec![
            (places[0], one.to_owned(), 2),
            (places[1], two.to_owned(), 3),
        ];
        wanted.sort();
        assert_eq!(device.shown(), wanted);
        drop(first);
        assert_eq!(device.shown(), [(places[1], two.to_owned(), 3)]);
        drop(second);
        assert_eq!(device.shown(), []);
    }
}

#[test]
fn a_device_without_rules_is_left_alone() {
    let rules = Arc::new(Rules::over(Played::new(How::Refuses)));
    let refused = rules.steer(INDEX, address("10.0.0.1:1"), 0).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
}

#[test]
fn a_rule_that_the_driver_does_not_show_is_not_used() {
    let device = Played::new(How::Lies);
    let rules = Arc::new(Rules::over(device.clone()));
    let refused = rules.steer(INDEX, address("10.0.0.1:1"), 0).unwrap_err();
    assert!(refused.to_string().contains("does not show"), "{refused}");
    assert_eq!(device.shown(), []);
}

#[test]
fn a_full_table_refuses_and_keeps_what_it_has() {
    let device = Played::new(How::Four);
    let rules = Arc::new(Rules::over(device.clone()));
    let make = |port| rules.steer(INDEX, SocketAddr::new([10, 0, 0, 1].into(), port), 1);
    let kept: Vec<_> = (1..=4).map(|port| make(port).unwrap()).collect();
    assert_eq!(make(5).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(device.shown().len(), 4);
    drop(kept);
    assert_eq!(device.shown(), []);
}

#[test]
fn the_first_queue_of_an_endpoint_keeps_the_rule() {
    let device = Played::new(How::Chooses);
    let rules = Arc::new(Rules::over(device.clone()));
    let to = address("10.0.0.1:31900");
    let kept = rules.steer(INDEX, to, 0).unwrap();
    let further = rules.steer(INDEX, to, 1).unwrap_err();
    assert_eq!(further.kind(), io::ErrorKind::ResourceBusy, "{further}");
    assert_eq!(device.shown(), [(100, to.to_string(), 0)]);
    drop(kept);
    drop(rules.steer(INDEX, to, 1).unwrap());
}

#[test]
fn a_rule_that_is_there_is_used_and_one_for_another_queue_is_replaced() {
    let device = Played::new(How::Chooses);
    let to = address("10.0.0.1:31900");
    let other = "10.0.0.1:31901";
    // A daemon that was killed ends no rule.
    let killed = Arc::new(Rules::over(device.clone()));
    std::mem::forget(killed.steer(INDEX, to, 1).unwrap());
    std::mem::forget(killed.steer(INDEX, address(other), 1).unwrap());
    let rules = Arc::new(Rules::over(device.clone()));
    let same = rules.steer(INDEX, to, 1).unwrap();
    assert_eq!(device.shown().len(), 2);
    drop(same);
    assert_eq!(device.shown().len(), 2, "it was there before");
    let elsewhere = rules.steer(INDEX, to, 2).unwrap();
    let mut shown = device.shown();
    shown.sort_by_key(|(_, to, _)| to.clone());
    assert_eq!(shown[0].2, 2);
    drop(elsewhere);
    assert_eq!(device.shown(), [(101, other.to_owned(), 1)]);
}

#[test]
fn the_end_of_the_daemon_ends_all_rules() {
    let device = Played::new(How::Chooses);
    let rules = Arc::new(Rules::over(device.clone()));
    let kept = rules.steer(INDEX, address("10.0.0.1:1"), 0).unwrap();
    rules.end();
    assert_eq!(device.shown(), []);
    assert!(rules.steer(INDEX, address("10.0.0.1:2"), 0).is_err());
    drop(kept);
}
