//! The programs of `docs/tokio.md`.

mod calls {
    include!(concat!(env!("OUT_DIR"), "/tokio_1.rs"));

    struct Lengths;

    impl Prices for Lengths {
        async fn cents(
            &self,
            article: String,
            _: dunlin::service::Context<'_>,
        ) -> Result<u64, String> {
            Ok(article.len() as u64)
        }
    }

    /// The calls have a short deadline, which a busy machine may miss.
    #[test]
    fn calls_are_tasks() {
        let server = dunlin::Server::builder().service(|_| PricesServer(Lengths));
        let (_running, address) = crate::running(server);
        let channel = crate::open(address);
        let articles = ["a", "bc", "def"].map(String::from).to_vec();
        dunlin_testkit::wait::until(|| {
            let total = crate::block_on(total(channel.clone(), articles.clone()));
            total.is_ok_and(|total| total == 6)
        });
    }
}

pub(super) mod handlers {
    include!(concat!(env!("OUT_DIR"), "/tokio_2.rs"));

    pub(crate) fn serve() {
        main().unwrap();
    }

    #[test]
    fn handlers_run_on_the_runtime_until_a_signal() {
        crate::while_serving("tokio", "TERM", |channel| {
            let prices = PricesClient::over(channel);
            let cents = crate::block_on(prices.cents(&"bread".into()));
            assert_eq!(cents.unwrap(), 5);
        });
    }
}

mod tasks {
    include!(concat!(env!("OUT_DIR"), "/tokio_3.rs"));

    #[test]
    fn tasks_of_a_thread_share_an_endpoint() {
        let (_server, address) = crate::named(GREET);
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let greeted = crate::block_on(run(nexus, &address.to_string()));
        assert_eq!(greeted.unwrap(), "name".len());
    }
}
