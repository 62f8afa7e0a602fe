//! The program of `docs/reflection.md`.

pub(super) mod store {
    include!(concat!(env!("OUT_DIR"), "/reflection_1.rs"));

    pub(crate) fn serve() {
        main().unwrap();
    }

    #[test]
    fn a_store_answers_ordinary_calls_too() {
        crate::while_serving("reflection", "TERM", |channel| {
            let kv = KvClient::over(channel);
            let search = Search {
                prefix: "a".into(),
                limit: None,
            };
            assert_eq!(crate::block_on(kv.scan(&search)).unwrap(), ["a"]);
            let key = U64::new(7);
            let missing = crate::block_on(kv.get(&key));
            assert!(matches!(missing, Err(dunlin::service::Failure::Method(it)) if it == key));
        });
    }
}
