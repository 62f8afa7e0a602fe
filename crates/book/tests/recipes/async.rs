//! The programs of `docs/async.md`.

mod ask {
    include!(concat!(env!("OUT_DIR"), "/async_1.rs"));

    #[test]
    fn a_server_asks_another_one() {
        let (_storage, storage) = crate::polled(|rpc| {
            rpc.on(APPEND, |(), request, cx| request.echo(cx));
        });
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let address = nexus.address();
        // It serves until the process ends.
        std::thread::spawn(move || serve(&nexus, storage).unwrap());
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        // The inner call has a short deadline, which a busy machine may miss.
        dunlin_testkit::wait::until(|| ask(&nexus, address).is_ok_and(|bytes| bytes == 6));
    }
}

mod reconnect {
    include!(concat!(env!("OUT_DIR"), "/async_2.rs"));

    use std::sync::atomic::{AtomicBool, Ordering};

    use dunlin::{Auto, Local, Nexus, Tasks};

    #[test]
    fn a_task_connects_again_after_its_server_has_ended() {
        let address = dunlin_testkit::address::free_port().leak();
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut local = Local::<Auto>::new(nexus.endpoint(Tasks::default()).unwrap());
        let open = Rc::new(Cell::new(None));
        let cx = local.caller();
        cx.spawn(keep_connected(local.caller(), address, Rc::clone(&open)));
        for _ in 0..2 {
            let server = Nexus::builder().bind(&*address).unwrap();
            let stopped = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut rpc = server.endpoint::<Auto, ()>(()).unwrap();
                    rpc.run_until(|_| stopped.load(Ordering::Relaxed));
                });
                dunlin_testkit::wait::until(|| {
                    local.turn();
                    open.get().is_some()
                });
                stopped.store(true, Ordering::Relaxed);
            });
            drop(server);
            dunlin_testkit::wait::until(|| {
                local.turn();
                open.get().is_none()
            });
        }
    }
}
