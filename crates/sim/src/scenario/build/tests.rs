//! The partners of clients.

use std::collections::BTreeSet;

use super::pairs;
use crate::world::rng::Rng;

#[test]
fn each_server_has_a_client_of_its_own_other_than_itself() {
    for seed in 0..50 {
        let all: Vec<usize> = (10..17).collect();
        let drawn = pairs(&all, all.clone(), &mut Rng::new(seed));
        assert!(drawn.iter().all(|(client, server)| client != server));
        let servers: BTreeSet<usize> = drawn.iter().map(|(_, server)| *server).collect();
        assert_eq!(servers.len(), all.len());
    }
    let draw = |seed| pairs(&[1, 2, 3, 4], vec![1, 2, 3, 4], &mut Rng::new(seed));
    assert!((1..20).any(|seed| draw(seed) != draw(0)));
}

#[test]
fn clients_that_are_no_servers_take_them_in_turns() {
    let drawn = pairs(&[1, 2, 3, 4, 5], vec![5, 6], &mut Rng::new(1));
    let of_six = drawn.iter().filter(|(_, server)| *server == 6).count();
    assert_eq!(of_six, 3, "{drawn:?}");
    assert_eq!(drawn[4], (5, 6));
}
