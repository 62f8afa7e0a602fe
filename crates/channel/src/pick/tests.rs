//! Shares of calls, and keys that move. The servers are numbers; a list of the calls in flight
//! simulates the time that each server takes.

use dunlin_core::{Nanos, Rng};
use proptest::prelude::*;

use super::*;
use crate::pace::Pace;
use crate::slab::Slab;

fn servers(count: usize) -> Vec<Ready> {
    let mut slab: Slab<AddressId, ()> = Slab::new();
    let server = |place| Ready {
        id: slab.insert(()),
        seed: seed_of(&format!("10.0.0.{place}:31850")),
        server: place as u64,
    };
    (0..count).map(server).collect()
}

fn picker(pick: Pick) -> Picker {
    Picker::new(&Config {
        pick,
        ..Config::DEFAULT
    })
}

/// The number of calls that each server gets out of `calls`, if `at_once` are in flight and server
/// i takes `takes[i]` steps for a call.
fn shares(pick: Pick, takes: &[u64], at_once: usize, calls: usize, seed: u64) -> Vec<u64> {
    let (ready, mut rng) = (servers(takes.len()), Rng::new(seed));
    let mut picker = picker(pick);
    let (mut got, mut under_way) = (vec![0; takes.len()], Vec::<(u64, usize, (u64, u32))>::new());
    let (mut paces, mut now) = (vec![Pace::new(); takes.len()], 0);
    for call in 0..calls {
        while under_way.len() >= at_once {
            now += 1;
            for (_, server, (span, busy)) in under_way.extract_if(.., |(end, ..)| *end <= now) {
                paces[server].on_answer(Nanos(span), busy);
            }
        }
        let load = |id: AddressId| {
            let at = under_way
                .iter()
                .filter(|(_, server, _)| *server == id.index());
            Load {
                outstanding: u32::try_from(at.count()).unwrap(),
                pace: paces[id.index()],
            }
        };
        let key = Some(mix(call as u64));
        let picked = picker.pick(&ready, None, key, load, &mut rng).unwrap();
        // No two calls take equally long.
        let span = takes[picked.index()] * (100 + u64::from(rng.below(100)));
        got[picked.index()] += 1;
        let busy = load(picked).outstanding + 1;
        under_way.push((now + span, picked.index(), (span, busy)));
    }
    got
}

#[test]
fn equal_servers_get_equal_shares() {
    for pick in [Pick::RoundRobin, Pick::LeastOfTwo, Pick::Hash] {
        for (count, at_once, seed) in [(2, 8, 1), (3, 1, 2), (3, 16, 3), (8, 64, 4)] {
            let calls = 4000 * count;
            let got = shares(pick, &vec![1; count], at_once, calls, seed);
            for one in &got {
                assert!((3600..=4400).contains(one), "{pick:?} of {count}: {got:?}");
            }
        }
    }
}

#[test]
fn with_least_of_two_a_slow_server_gets_few_calls() {
    let of_two = [1, 2, 4, 8, 32, 64, 128].map(|at_once| (2, at_once));
    for (count, at_once) in of_two.into_iter().chain([(3, 16), (3, 64), (8, 64)]) {
        let mut takes = vec![1; count];
        takes[0] = 10;
        let calls = 4000 * count;
        let got = shares(Pick::LeastOfTwo, &takes, at_once, calls, at_once as u64);
        assert!(got[0] <= 4000 / 5, "{count} with {at_once}: {got:?}");
        assert!(got[0] >= 4000 / 50, "it is not cut off: {got:?}");
    }
}

#[test]
fn a_server_that_came_back_gets_no_more_than_others_have() {
    let (ready, mut rng) = (servers(3), Rng::new(5));
    let (mut picker, mut outstanding) = (picker(Pick::LeastOfTwo), [20_u32, 20, 0]);
    let mut known = Pace::new();
    (0..1000).for_each(|_| known.on_answer(Nanos(1000), 20));
    let paces = [known, known, Pace::new()];
    for _ in 0..60 {
        let load = |id: AddressId| Load {
            outstanding: outstanding[id.index()],
            pace: paces[id.index()],
        };
        let picked = picker.pick(&ready, None, None, load, &mut rng).unwrap();
        let most = outstanding[0].max(outstanding[1]);
        assert!(picked.index() != 2 || outstanding[2] <= most);
        outstanding[picked.index()] += 1;
    }
}

fn owner(ready: &[Ready], key: u64) -> AddressId {
    let mut picker = picker(Pick::Hash);
    let picked = picker.pick(ready, None, Some(key), |_| Load::NONE, &mut Rng::new(1));
    picked.expect("there are servers")
}

#[test]
fn only_the_keys_of_a_server_that_leaves_move() {
    for count in [2, 3, 5, 16, 100] {
        let ready = servers(count);
        for gone in [0, count / 2, count - 1] {
            let mut left = ready.clone();
            left.swap_remove(gone);
            let keys = 20_000;
            let mut moved = 0;
            for key in 0..keys {
                let (before, after) = (owner(&ready, key), owner(&left, key));
                moved += u64::from(before != after);
                assert!(before == after || before == ready[gone].id);
            }
            assert!(
                moved * count as u64 * 2 <= keys * 3,
                "{moved} of {keys} of {count}"
            );
            assert!(
                moved * count as u64 * 2 >= keys,
                "{moved} of {keys} of {count}"
            );
        }
    }
}

proptest! {
    #[test]
    fn a_server_is_avoided_if_there_is_another(
        count in 1..6_usize, avoid in 0..6_usize, key: u64, seed: u64,
        pick in prop::sample::select(vec![Pick::RoundRobin, Pick::LeastOfTwo, Pick::Hash]),
    ) {
        let ready = servers(count);
        let avoid = ready.get(avoid).map(|one| one.id);
        let (mut picker, mut rng) = (picker(pick), Rng::new(seed));
        for _ in 0..20 {
            let picked = picker.pick(&ready, avoid, Some(key), |_| Load::NONE, &mut rng);
            prop_assert!(ready.iter().any(|one| Some(one.id) == picked));
            prop_assert!(count == 1 || picked != avoid);
        }
        prop_assert_eq!(picker.pick(&[], avoid, Some(key), |_| Load::NONE, &mut rng), None);
    }

    #[test]
    fn all_servers_are_avoided_equally(seed: u64) {
        let ready = servers(4);
        for pick in [Pick::RoundRobin, Pick::LeastOfTwo] {
            let (mut picker, mut rng) = (picker(pick), Rng::new(seed));
            let mut got = [0_u32; 4];
            for _ in 0..3000 {
                let picked = picker.pick(&ready, Some(ready[1].id), None, |_| Load::NONE, &mut rng);
                got[picked.unwrap().index()] += 1;
            }
            prop_assert_eq!(got[1], 0);
            prop_assert!([0, 2, 3].iter().all(|at| (850..1150).contains(&got[*at])), "{:?}", got);
        }
    }
}
