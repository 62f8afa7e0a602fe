//! The programs of `docs/services.md`.

mod values {
    include!(concat!(env!("OUT_DIR"), "/services_1.rs"));

    /// Has one value, and as many keys as the prefix has bytes.
    struct Store;

    impl Kv for Store {
        async fn get(&self, key: &U64, _: service::Context<'_>) -> Result<Value, Missing> {
            let (version, bytes) = (*key, [7; 24]);
            match key.get() {
                1 => Ok(Value { version, bytes }),
                _ => Err(Missing {
                    newest: U64::new(1),
                }),
            }
        }

        async fn scan(&self, prefix: String, _: service::Context<'_>) -> Vec<String> {
            prefix.chars().map(String::from).collect()
        }

        async fn touch(&self, _: &U64, _: service::Context<'_>) {}
    }

    #[test]
    fn a_service_with_two_codecs() {
        let server = dunlin::Server::builder().service(|_| KvServer(Store));
        let (_running, address) = crate::running(server);
        let kv = KvClient::over(crate::open(address));
        crate::block_on(async {
            assert_eq!(kv.get(&U64::new(1)).await.unwrap().bytes, [7; 24]);
            let missing = kv.get(&U64::new(2)).await.unwrap_err();
            assert!(matches!(missing, service::Failure::Method(it) if it.newest.get() == 1));
            assert_eq!(kv.scan(&"ab".into()).await.unwrap(), ["a", "b"]);
            kv.touch(&U64::new(1)).unwrap();
        });
    }
}

mod words {
    include!(concat!(env!("OUT_DIR"), "/services_2.rs"));

    #[test]
    fn a_client_of_futures_calls_a_server_of_the_poll_api() {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let address = nexus.address();
        std::thread::spawn(move || {
            let mut rpc = open(&nexus).unwrap();
            rpc.run_until(|_| false);
        });
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let endpoint = nexus.endpoint(dunlin::Tasks::default()).unwrap();
        let mut local = dunlin::Local::<Auto>::new(endpoint);
        let session = local.connect(address).unwrap();
        let longest = local.block_on(|caller| ask(caller, session)).unwrap();
        assert_eq!(longest, "words");
    }
}

mod users {
    include!(concat!(env!("OUT_DIR"), "/services_3.rs"));

    struct Names;

    impl Users for Names {
        async fn name(&self, id: u64, _: dunlin::service::Context<'_>) -> Result<String, u32> {
            Ok(format!("user {id}"))
        }
    }

    /// The call has a short deadline, which a busy machine may miss.
    #[test]
    fn a_typed_client_calls_over_a_channel() {
        let server = dunlin::Server::builder().service(|_| UsersServer(Names));
        let (_running, address) = crate::running(server);
        let channel = crate::open(address);
        dunlin_testkit::wait::until(|| {
            let name = crate::block_on(name(channel.clone(), 7));
            name.is_ok_and(|name| name == "user 7")
        });
    }
}

mod carts {
    include!(concat!(env!("OUT_DIR"), "/services_4.rs"));

    struct Back;

    impl Carts for Back {
        async fn total(&self, cart: u64, _: Context<'_>) -> Result<u64, String> {
            Ok(cart * 100)
        }
    }

    #[test]
    fn a_handler_calls_another_server_under_its_context() {
        let (_back, back) =
            crate::running(dunlin::Server::builder().service(|_| CartsServer(Back)));
        let front = dunlin::Server::builder().service(move |thread| {
            let (cx, back) = (thread.caller(), CartsClient::over(crate::open(back)));
            CartsServer(Front { cx, back })
        });
        let (_front, front) = crate::running(front);
        let carts = CartsClient::over(crate::open(front));
        assert_eq!(crate::block_on(total(&carts)).unwrap(), 700);
    }
}
