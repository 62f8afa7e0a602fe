//! The order in which clients lose their records.

use dunlin_sim::Rng;

use super::*;

#[test]
fn the_client_with_the_oldest_entry_is_removed_first() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let mut clients = Clients::new(8);
        // Clients by their last entries.
        let mut expected = BTreeMap::new();
        for index in 1..400 {
            let count = expected.len();
            if count == 0 || rng.one_in(3) {
                clients.open(1000 - index, index);
                expected.insert(index, 1000 - index);
                if count == 8 {
                    expected.pop_first();
                }
            } else {
                let last = *expected.keys().nth(rng.index(count)).unwrap();
                let client = expected.remove(&last).unwrap();
                let name = Name {
                    client,
                    number: 1,
                    first: 1,
                };
                let record = clients.record(client).unwrap();
                assert_eq!(record.earlier(name, (&[], &Request::OPEN), index), None);
                expected.insert(index, client);
            }
            let mut names: Vec<u64> = expected.values().copied().collect();
            names.sort_unstable();
            assert!(clients.records.keys().eq(&names), "seed {seed}, {index}");
        }
    }
}
