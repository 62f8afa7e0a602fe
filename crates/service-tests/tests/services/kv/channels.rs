//! The async client over channels, against servers in this process that come and go.

mod handlers;
mod server;

use std::time::{Duration, Instant};

use dunlin_hub::Hub;
use dunlin_kv::store::{Delta, MAX_VALUE, Mode, Verb};
use dunlin_kv::{Channels, Error, FleetOptions, Map, Store, WhenDown, serve};
use dunlin_testkit::wait::{self, block_on};

use server::{Server, open, servers};

#[test]
fn every_operation_works_over_channels() {
    let servers = servers(Mode::Store);
    let kv = open(&servers, WhenDown::Fail);
    block_on(async {
        assert!(kv.get(b"name").await.unwrap().is_none());
        let version = kv.store(&Store::set(b"name", b"dunlin")).await.unwrap();
        let item = kv.get(b"name").await.unwrap().unwrap();
        assert_eq!((&*item.value, item.version), (&b"dunlin"[..], version));
        let add = Store {
            verb: Verb::Add,
            ..Store::set(b"name", b"x")
        };
        let present = kv.store(&add).await.unwrap_err();
        assert_eq!(present.error(), Error::Present);
        let names = servers.iter().map(|it| it.address.to_string());
        assert!(
            names
                .into_iter()
                .any(|name| present.server() == Some(&*name))
        );
        kv.store(&Store::set(b"n", b"41")).await.unwrap();
        assert_eq!(kv.count(b"n", Delta::Up(1)).await.unwrap().0, 42);
        let (number, version) = kv.count(b"n", Delta::Down(1)).await.unwrap();
        assert_eq!(number, 41);
        let count_if = |version| kv.count_if(b"n", Delta::Up(5), version);
        let (number, later) = count_if(version).await.unwrap();
        assert_eq!(number, 46);
        let differs = count_if(version).await.unwrap_err();
        assert_eq!(differs.error(), Error::VersionDiffers);
        assert_eq!(count_if(later).await.unwrap().0, 51);
        kv.touch(b"n", 100).await.unwrap();
        assert!(kv.get(b"n").await.unwrap().unwrap().lifetime > 90);
        kv.delete(b"n", None).await.unwrap();
        assert_eq!(
            kv.delete(b"n", None).await.unwrap_err().error(),
            Error::Absent
        );
        assert_eq!(kv.get(b"").await.unwrap_err().error(), Error::BadKey);
        let long = vec![7; MAX_VALUE + 1];
        let too_long = kv.store(&Store::set(b"k", &long)).await.unwrap_err();
        assert_eq!(too_long.error(), Error::TooLong);
    });
}

#[test]
fn figures_keys_and_flushes_of_all_servers() {
    let servers = servers(Mode::Store);
    let kv = open(&servers, WhenDown::Fail);
    let mut names: Vec<String> = servers.iter().map(|it| it.address.to_string()).collect();
    names.sort();
    assert_eq!(kv.servers(), names);
    let mut keys: Vec<Vec<u8>> = (0..300_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    keys.sort();
    let items = async || {
        let mut items = 0;
        for name in &names {
            let all = kv.figures(name).await.unwrap();
            assert_eq!(all.len(), 2);
            assert!(kv.map(name).await.unwrap().partitions() == 2);
            items += all.iter().map(|it| it.items).sum::<u64>();
        }
        items
    };
    let scan = async || {
        let mut seen = Vec::new();
        for (name, partition) in names.iter().flat_map(|name| [(name, 0), (name, 1)]) {
            let mut place = Some(0);
            while let Some(at) = place {
                let (keys, next) = kv.scan(name, partition, at).await.unwrap();
                seen.extend(keys);
                place = next;
            }
        }
        seen.sort();
        seen
    };
    block_on(async {
        for key in &keys {
            kv.store(&Store::set(key, b"value")).await.unwrap();
        }
        assert_eq!(items().await, 300);
        assert_eq!(scan().await, keys);
        for _ in 0..500 {
            kv.get(&keys[17]).await.unwrap();
        }
        let mut hottest = Vec::new();
        for name in &names {
            for hot in kv.hot_keys(name).await.unwrap() {
                hottest.extend(hot.keys.into_iter().max_by_key(|it| it.1));
            }
        }
        let hottest = hottest.into_iter().max_by_key(|it| it.1).unwrap();
        assert_eq!(hottest.0, keys[17]);
        kv.flush(0).await.unwrap();
        assert!(kv.get(&keys[17]).await.unwrap().is_none());
        assert!(scan().await.is_empty());
        for error in [
            kv.figures("127.0.0.1:1").await.unwrap_err(),
            kv.scan(&names[0], 2, 0).await.unwrap_err(),
        ] {
            assert_eq!(error.error(), Error::Unavailable);
        }
    });
}

/// A flush, and figures, after a restart with another map.
#[test]
fn requests_for_whole_servers_are_repeated_with_the_next_map() {
    let mut server = vec![Server::start("127.0.0.1:0", Mode::Store, 2, 1)];
    let kv = open(&server, WhenDown::Wait);
    let name = server[0].address.to_string();
    block_on(kv.store(&Store::set(b"key", b"value"))).unwrap();
    server.clear();
    server.push(Server::start(&name, Mode::Store, 2, 2));
    block_on(async {
        // While the result of a flush is unknown, the new server has not answered yet.
        while kv.flush(0).await.is_err() {}
        assert_eq!(kv.figures(&name).await.unwrap()[0].map_changed, 1);
        assert_eq!(kv.map(&name).await.unwrap().tag(), 2);
    });
}

#[test]
fn each_address_of_a_name_is_a_server() {
    let server = [Server::start("127.0.0.1:0", Mode::Store, 1, 1)];
    let address = server[0].address.to_string();
    let hub = Hub::builder().listen("127.0.0.1:0").start().unwrap();
    let name = format!("dns+{address}");
    let kv = Channels::open(&hub, [&*name], FleetOptions::DEFAULT).unwrap();
    assert_eq!(kv.servers(), [&*address]);
    block_on(kv.store(&Store::set(b"key", b"value"))).unwrap();
    // A client that lists the address itself uses the same server.
    let other = open(&server, WhenDown::Fail);
    assert!(block_on(other.get(b"key")).unwrap().is_some());
    let refused = Channels::open(&hub, ["dns+no port", &*address], FleetOptions::DEFAULT);
    assert!(refused.unwrap_err().to_string().contains("`no port`"));
}

/// Values of lengths that travel in different ways, alone and with others.
#[test]
fn many_keys_of_all_servers_are_asked_for_at_once() {
    let servers = servers(Mode::Store);
    let kv = open(&servers, WhenDown::Fail);
    let lengths = [0, 1, 999, 1000, 5000, 65_535, 65_536, 65_537, 300_000];
    let value = |number: usize| vec![number.to_le_bytes()[0]; lengths[number % lengths.len()]];
    let keys: Vec<Vec<u8>> = (0..60_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    block_on(async {
        for (number, key) in keys.iter().enumerate().filter(|it| it.0 % 4 != 3) {
            kv.store(&Store::set(key, &value(number))).await.unwrap();
        }
        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let items = kv.get_many(&asked).await.unwrap();
        for (number, item) in items.into_iter().enumerate() {
            let alone = kv.get(&keys[number]).await.unwrap();
            let item = item.unwrap();
            assert_eq!(alone, item, "key {number}");
            let expected = (number % 4 != 3).then(|| value(number));
            assert!(item.map(|item| item.value) == expected, "key {number}");
        }
    });
}

#[test]
fn a_server_that_is_down_fails_at_once_and_comes_back_with_another_map() {
    let mut all = servers(Mode::Cache);
    let (failing, missing) = (open(&all, WhenDown::Fail), open(&all, WhenDown::Miss));
    let keys: Vec<Vec<u8>> = (0..30_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let address = all[1].address;
    block_on(async {
        for key in &keys {
            failing.store(&Store::set(key, b"before")).await.unwrap();
        }
        assert!(
            missing
                .get_many(&asked)
                .await
                .unwrap()
                .into_iter()
                .all(|item| item.unwrap().is_some())
        );
        drop(all.remove(1));
        // The clients know that the server is down once a get of its keys has failed.
        wait::until(|| block_on(failing.get_many(&asked)).is_err());
        let begin = Instant::now();
        let error = failing.get_many(&asked).await.unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!(error.error(), Error::Unavailable);
        assert_eq!(error.server(), Some(&*address.to_string()));
        let found = missing.get_many(&asked).await.unwrap();
        let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        let count = found.iter().flatten().count();
        assert!((3..28).contains(&count), "{count} of 30 keys are found");
        let lost: Vec<&[u8]> = asked
            .iter()
            .zip(&found)
            .filter(|it| it.1.is_none())
            .map(|it| *it.0)
            .collect();
        assert!(missing.store(&Store::set(lost[0], b"x")).await.is_err());
        all.push(Server::start(&address.to_string(), Mode::Cache, 3, 9));
        wait::until(|| block_on(failing.store(&Store::set(lost[0], b"after"))).is_ok());
        let item = failing.get(lost[0]).await.unwrap().unwrap();
        assert_eq!(item.value, b"after");
        // The channel to this key's partition may connect later.
        wait::until(|| block_on(failing.get(lost[1])).is_ok());
        assert!(failing.get(lost[1]).await.unwrap().is_none());
    });
}

#[test]
fn a_get_is_not_a_miss_if_no_server_was_reached() {
    let mut all = servers(Mode::Cache);
    all.iter_mut().for_each(|server| server.threads.clear());
    let missing = open(&all, WhenDown::Miss);
    let keys: Vec<Vec<u8>> = (0..30_u32).map(|it| it.to_le_bytes().to_vec()).collect();
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    block_on(async {
        let error = missing.get(asked[0]).await.unwrap_err();
        assert_eq!(error.error(), Error::Unavailable);
        let error = missing.get_many(&asked).await.unwrap_err();
        assert_eq!(error.error(), Error::Unavailable);
    });
    // One of them is known to be a cache, so the others are assumed to be caches, too.
    let address = all[0].address.to_string();
    let _first = Server::start(&address, Mode::Cache, 2, 9);
    wait::until(|| block_on(missing.get_many(&asked)).is_ok());
}

/// A key of this partition.
fn key_of(map: &Map, partition: u16) -> Vec<u8> {
    let mut keys = (0..1000_u32).map(|number| number.to_le_bytes().to_vec());
    keys.find(|key| map.place(key).partition == partition)
        .unwrap()
}

#[test]
fn partitions_serve_while_the_first_endpoint_is_down() {
    let map = Map::new(1, Mode::Cache, 0..2).unwrap();
    let keys = [key_of(&map, 0), key_of(&map, 1)];
    let mut server = [Server::start("127.0.0.1:0", Mode::Cache, 2, 1)];
    let address = server[0].address;
    let [failing, missing] = [WhenDown::Fail, WhenDown::Miss].map(|how| open(&server, how));
    let is_found = |key| block_on(failing.get(key)).unwrap().is_some();
    block_on(async {
        // Before this, the clients have not used the other partition.
        failing.store(&Store::set(&keys[0], b"0")).await.unwrap();
        missing.get(&keys[0]).await.unwrap().unwrap();
        server[0].threads[0] = None;
        wait::until(|| block_on(failing.get(&keys[0])).is_err());
        failing.store(&Store::set(&keys[1], b"1")).await.unwrap();
        assert!(is_found(&keys[1]));
        let begin = Instant::now();
        let error = failing.get(&keys[0]).await.unwrap_err();
        assert_eq!(error.error(), Error::Unavailable);
        assert!(begin.elapsed() < Duration::from_millis(900), "it waits");
        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let found = missing.get_many(&asked).await.unwrap();
        let found = found.into_iter().map(|item| item.unwrap().is_some());
        let are_found: Vec<bool> = found.collect();
        assert_eq!(are_found, [false, true]);
        // After the next start, the server has another map, and again no first endpoint.
        drop(std::mem::take(&mut server[0].threads));
        let next = Map::new(2, Mode::Cache, 0..2).unwrap();
        server[0] = Server::start_some(&address.to_string(), &next, 1..2, serve);
        wait::until(|| block_on(failing.store(&Store::set(&keys[1], b"2"))).is_ok());
        assert!(is_found(&keys[1]));
        assert!(failing.get(&keys[0]).await.is_err());
    });
}
