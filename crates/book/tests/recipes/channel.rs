//! The programs of `docs/channel.md`.

mod greeting {
    include!(concat!(env!("OUT_DIR"), "/channel_1.rs"));

    /// The call has a short deadline, which a busy machine may miss.
    #[test]
    fn a_client_greets_a_server_and_finds_out_that_it_has_ended() {
        let (server, address) = crate::named(GREET);
        crate::place("greeter.example:31850", address);
        dunlin_testkit::wait::until(|| crate::block_on(greet()).is_ok());
        drop(server);
        let failed = crate::block_on(greet()).unwrap_err();
        assert_eq!(failed.ran(), Ran::No, "{failed}");
    }
}

mod keys {
    include!(concat!(env!("OUT_DIR"), "/channel_2.rs"));

    #[test]
    fn a_client_reads_by_key() {
        let (_server, address) = crate::named(READ);
        crate::place("users.example:31850", address);
        crate::block_on(read(7)).unwrap();
    }
}

mod hub {
    include!(concat!(env!("OUT_DIR"), "/channel_3.rs"));

    #[test]
    fn a_hub_of_two_threads_calls_two_servers() {
        let servers = [(); 2].map(|()| crate::named(dunlin::ReqType(1)));
        let shown = ["127.0.0.1:31850", "127.0.0.1:31851"];
        for (shown, (_, address)) in shown.into_iter().zip(&servers) {
            crate::place(shown, address);
        }
        let channel = open().unwrap();
        dunlin_testkit::wait::until(|| {
            let addresses = channel.state().addresses;
            let ready =
                |it: &dunlin::channel::AddressState| it.state == dunlin::channel::State::Ready;
            addresses.iter().filter(|it| ready(it)).count() == 2
        });
        let answer = crate::block_on(channel.call(dunlin::ReqType(1), b"")).unwrap();
        assert_eq!(answer.data(), b"name");
    }
}

mod resolver {
    include!(concat!(env!("OUT_DIR"), "/channel_4.rs"));

    #[test]
    fn a_resolver_reads_addresses_from_a_file() {
        let servers = [(); 2].map(|()| crate::named(dunlin::ReqType(1)));
        let [first, second] = &servers;
        let folder = dunlin_testkit::folder::Folder::new("greeters");
        let file = folder.path("greeters");
        std::fs::write(&file, format!("{}\n", second.1)).unwrap();
        crate::place("greeter.example:31850", first.1);
        crate::place("/etc/greeters", &file);
        let channel = open().unwrap();
        dunlin_testkit::wait::until(|| {
            let addresses = channel.state().addresses;
            [first, second]
                .iter()
                .all(|(_, address)| addresses.iter().any(|it| it.address == address.to_string()))
        });
    }
}
