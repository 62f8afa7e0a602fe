//! The life of rules. These tests play the device, because they run on machines whose devices have
//! no rules.

use std::collections::BTreeMap;

use super::entry::tests as bytes;
use super::*;

/// The behaviour of a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::setup) enum How {
    /// It chooses places, or lets the caller choose among four.
    Chooses,
    Four,
    /// As `Four`; it refuses a list with more places than it has rules, as mlx5 does.
    Exact,
    /// As `Four`; another program ends a rule after each count, and the list has a zero for it, as
    /// mlx4's has.
    Fills,
    /// As `Four`; another program makes a rule between the first count and the first list.
    Grows,
    /// It has no rules.
    Refuses,
    /// It accepts each rule, and makes it for another queue.
    Lies,
    /// It makes each rule and does not say where, or answers with another kind of rule.
    Mute,
    Alters,
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

    /// Whether the caller chooses among four places.
    fn has_four(&self) -> bool {
        matches!(self.how, How::Four | How::Exact | How::Fills | How::Grows)
    }

    /// Has a rule that no daemon of the test has made.
    fn preset(&self, place: u32, to: SocketAddr, queue: u32) {
        let command = FlowRule { to, queue, place }.to_command();
        let rule = bytes::rule(&command).to_vec();
        self.rules().insert(place, rule);
    }

    /// Lists the places, if the list has room.
    fn list(&self, command: &mut [u8]) -> io::Result<()> {
        let mut places: Vec<_> = self.rules().keys().copied().collect();
        let (room, _) = entry::count(command);
        if self.how == How::Grows && places.is_empty() {
            self.preset(3, address(OTHER), 0);
            places.push(3);
        }
        match self.how {
            How::Exact if room > places.len() => {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            How::Fills => places.resize(places.len().max(room), 0),
            _ => {}
        }
        if room < places.len() {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        bytes::set_places(command, &places, 4);
        Ok(())
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
        let place = match entry::place(command) {
            ANYWHERE if !self.has_four() => {
                let mut places = 100..;
                places.find(|place| !rules.contains_key(place)).unwrap()
            }
            place if self.has_four() && place < 4 => place,
            _ => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        };
        bytes::set_place(command, place);
        let mut kept = command.to_vec();
        if self.how == How::Lies {
            bytes::set_queue(&mut kept, 77);
        }
        rules.insert(place, bytes::rule(&kept).to_vec());
        match self.how {
            How::Mute => bytes::set_place(command, ANYWHERE),
            // The first byte of the kind.
            How::Alters => bytes::set_rule(command, &[99]),
            _ => {}
        }
        Ok(())
    }
}

impl Drivers for Played {
    fn ask(&self, _index: u32, command: &mut [u8]) -> io::Result<()> {
        if self.how == How::Refuses {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let absent = || io::Error::from_raw_os_error(libc::ENOENT);
        let place = entry::place(command);
        match u32::from_ne_bytes(*command.first_chunk().unwrap()) {
            COUNT => {
                let chooses = if self.has_four() { 0 } else { 1 << 31 };
                let ended = usize::from(self.how == How::Fills);
                let count = u32::try_from(self.rules().len() + ended).unwrap();
                bytes::set_count(command, count, chooses);
            }
            ALL => self.list(command)?,
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

/// The address of a rule of another program.
const OTHER: &str = "10.0.0.9:9";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_rule_lives_as_long_as_its_endpoint() {
    for (how, places) in [
        (How::Chooses, [100, 101]),
        (How::Four, [3, 2]),
        (How::Exact, [3, 2]),
        (How::Fills, [3, 2]),
    ] {
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
    for how in [How::Lies, How::Mute] {
        let device = Played::new(how);
        device.preset(50, address(OTHER), 3);
        let rules = Arc::new(Rules::over(device.clone()));
        let refused = rules.steer(INDEX, address("10.0.0.1:1"), 0).unwrap_err();
        assert!(refused.to_string().contains("does not show"), "{refused}");
        assert_eq!(device.shown(), [(50, OTHER.to_owned(), 3)], "{how:?}");
    }
}

#[test]
fn a_driver_may_answer_anything_if_it_shows_the_rule() {
    let device = Played::new(How::Alters);
    let rules = Arc::new(Rules::over(device.clone()));
    let kept = rules.steer(INDEX, address("10.0.0.1:1"), 0).unwrap();
    assert_eq!(device.shown(), [(100, "10.0.0.1:1".to_owned(), 0)]);
    drop(kept);
    assert_eq!(device.shown(), []);
}

#[test]
fn a_used_rule_of_the_operator_stays_whatever_further_queues_ask_for() {
    let device = Played::new(How::Chooses);
    let to = address("10.0.0.1:31900");
    device.preset(7, to, 0);
    let rules = Arc::new(Rules::over(device.clone()));
    let preset = [(7, to.to_string(), 0)];
    let first = rules.steer(INDEX, to, 0).unwrap();
    let further = rules.steer(INDEX, to, 1).unwrap_err();
    assert_eq!(further.kind(), io::ErrorKind::ResourceBusy, "{further}");
    assert_eq!(device.shown(), preset);
    drop(first);
    assert_eq!(device.shown(), preset);
    let again = rules.steer(INDEX, to, 0).unwrap();
    rules.end();
    assert_eq!(device.shown(), preset);
    drop(again);
    assert_eq!(device.shown(), preset);
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
fn a_rule_that_another_program_makes_meanwhile_keeps_its_place() {
    let device = Played::new(How::Grows);
    let rules = Arc::new(Rules::over(device.clone()));
    let kept = rules.steer(INDEX, address("10.0.0.1:1"), 1).unwrap();
    let other = (3, OTHER.to_owned(), 0);
    assert_eq!(
        device.shown(),
        [(2, "10.0.0.1:1".to_owned(), 1), other.clone()]
    );
    drop(kept);
    assert_eq!(device.shown(), [other]);
}

#[test]
fn a_full_table_has_room_for_a_rule_in_the_place_of_an_old_one() {
    for how in [How::Four, How::Fills] {
        let device = Played::new(how);
        let to = |port| SocketAddr::new([10, 0, 0, 1].into(), port);
        for (place, port) in (0..4).zip(1..) {
            device.preset(place, to(port), 1);
        }
        let rules = Arc::new(Rules::over(device.clone()));
        let kept = rules.steer(INDEX, to(1), 0).unwrap();
        assert!(device.shown().contains(&(0, to(1).to_string(), 0)));
        drop(kept);
        assert_eq!(device.shown().len(), 3);
    }
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
