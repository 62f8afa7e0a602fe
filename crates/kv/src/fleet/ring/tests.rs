//! Which keys move when a server is removed or added.

use dunlin_store::route;

use super::Ring;

const KEYS: u32 = 20_000;

fn names(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("10.0.{}.{}:31850", number / 250, number % 250))
        .collect()
}

fn ring(names: &[String]) -> Ring<&str> {
    Ring::of(names.iter().map(String::as_str))
}

/// Counts the keys whose owners differ between two rings, and those among them that move
/// needlessly: neither from nor to the server that only one of the rings has.
fn moved(one: &Ring<&str>, other: &Ring<&str>, changed: &str) -> (u32, u32) {
    let (mut all, mut needless) = (0, 0);
    for key in 0..KEYS {
        let hash = route(format!("user:{key}").as_bytes());
        let owners = [one.owner(hash).unwrap(), other.owner(hash).unwrap()];
        if owners[0] != owners[1] {
            all += 1;
            needless += u32::from(!owners.contains(&changed));
        }
    }
    (all, needless)
}

#[test]
fn few_keys_move_when_a_server_leaves_or_comes() {
    for count in [2, 3, 5, 10, 30, 100] {
        let all = names(count + 1);
        let (before, after) = (ring(&all[..count]), ring(&all));
        let most = KEYS * 3 / (2 * u32::try_from(count).unwrap());
        let (came, needless) = moved(&before, &after, &all[count]);
        assert!(came <= most && needless == 0, "{count}: {came}, {needless}");
        // Remove the first server.
        let (left, needless) = moved(&before, &ring(&all[1..count]), &all[0]);
        assert!(left <= most && needless == 0, "{count}: {left}, {needless}");
        assert!(
            left > most / 3 && came > most / 4,
            "{left} and {came} moved"
        );
    }
}

#[test]
fn the_order_of_the_list_does_not_matter() {
    let mut all = names(9);
    let one = ring(&all.clone())
        .servers
        .iter()
        .map(|it| it.0)
        .collect::<Vec<_>>();
    all.reverse();
    let other = ring(&all).servers.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(one, other);
}

#[test]
fn keys_have_the_same_owners_in_every_release() {
    // A client of another release must find the items that this release has written.
    let all = names(5);
    let ring = ring(&all);
    let owners = ["a", "name", "user:17", "", "x"].map(|key| {
        let owner = ring.owner(route(key.as_bytes())).unwrap();
        all.iter().position(|name| name == owner).unwrap()
    });
    assert_eq!(owners, [4, 4, 2, 0, 4]);
    assert_eq!(Ring::of([]).owner(7), None);
}
