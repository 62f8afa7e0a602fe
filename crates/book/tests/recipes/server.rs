//! The programs of `docs/server.md`.

pub(super) mod counter {
    include!(concat!(env!("OUT_DIR"), "/server_1.rs"));

    pub(crate) fn serve() {
        main().unwrap();
    }

    #[test]
    fn two_threads_share_a_total_until_ctrl_c() {
        crate::while_serving("server", "INT", |channel| {
            let count = CountClient::over(channel);
            let add = |amount| crate::block_on(count.add(&amount)).unwrap();
            assert_eq!([add(2), add(3), add(4)], [2, 5, 9]);
        });
    }
}

mod layers {
    include!(concat!(env!("OUT_DIR"), "/server_2.rs"));

    #[test]
    fn a_layer_lets_a_few_calls_through() {
        let (_running, address) = crate::running(server());
        let resize = ResizeClient::over(crate::open(address));
        let image = crate::block_on(resize.resize(&vec![1, 2, 3])).unwrap();
        assert_eq!(image, [1, 2, 3]);
    }
}

mod limits {
    include!(concat!(env!("OUT_DIR"), "/server_3.rs"));

    #[test]
    fn a_note_above_the_limit_is_refused() {
        let (_running, address) = crate::running(server());
        let notes = NotesClient::over(crate::open(address));
        assert_eq!(crate::block_on(notes.add(&"note".into())).unwrap(), 4);
        let refused = crate::block_on(notes.add(&"x".repeat(65 << 10))).unwrap_err();
        assert_eq!(refused.ran(), dunlin::Ran::No, "{refused}");
    }
}
