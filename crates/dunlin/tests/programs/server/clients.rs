//! Clients that connect without a channel to a server that drains.

use std::sync::Arc;
use std::time::Duration;

use dunlin::service::Failure;
use dunlin::{
    AsyncError, Auto, CloseReason, ConnectError, ConnectFailure, ConnectOptions, ErrorCode, Local,
    Ran, RpcError, Tasks,
};

use crate::server::service::{Book, WorkClient, Worker};
use crate::server::{PATIENCE, WAYS, Way, until};

fn local(way: Way) -> Local<Auto> {
    let nexus = way.nexus().bind("127.0.0.1:0").unwrap();
    Local::new(nexus.endpoint(Tasks::default()).unwrap())
}

#[test]
fn requests_and_sessions_that_come_during_a_drain_are_refused() {
    for way in WAYS {
        let book = Arc::<Book>::default();
        let server = way.server().drain_timeout(Duration::from_secs(2));
        let running = server
            .service(Worker::server(&book))
            .start("127.0.0.1:0")
            .unwrap();
        let address = running.address();
        let mut local = local(way);
        let session = local.connect(address).unwrap();
        let work = WorkClient::new(local.caller(), session);
        assert_eq!(local.block_on(|_| work.run(&(1, 0))), Ok(1));
        let drains = std::thread::spawn(move || running.drain());
        let refused = loop {
            match local.block_on(|_| work.run(&(2, 0))) {
                Ok(_) => {}
                Err(failure) => break failure,
            }
        };
        let code = RpcError::Rejected(ErrorCode::SHUTTING_DOWN, Ran::No);
        assert_eq!(refused, Failure::Call(AsyncError::Rpc(code)));
        let options = ConnectOptions {
            patience: PATIENCE,
            ..ConnectOptions::default()
        };
        let late = local.connect_with(address, &options).unwrap();
        let failed = local.inspect(|rpc| rpc.wait_connected(late)).unwrap_err();
        let ConnectError::Failed(ConnectFailure::Refused(code)) = failed else {
            panic!("{failed}");
        };
        assert_eq!(code.to_string(), "closing");
        // The client keeps its session, so the server waits for the time-out.
        let drained = local.block_on(|cx| async move {
            while !drains.is_finished() {
                cx.sleep(Duration::from_millis(1)).await;
            }
            drains.join().unwrap()
        });
        assert_eq!((drained.finished, drained.cut_off), (0, 0));
        assert!(drained.refused >= 1, "{drained:?}");
    }
}

#[test]
fn a_request_that_never_finishes_is_cut_off() {
    for way in WAYS {
        let book = Arc::<Book>::default();
        let server = way.server().drain_timeout(Duration::from_millis(200));
        let running = server
            .service(Worker::server(&book))
            .start("127.0.0.1:0")
            .unwrap();
        let mut local = local(way);
        let session = local.connect(running.address()).unwrap();
        let work = WorkClient::new(local.caller(), session);
        let hangs = Arc::clone(&book);
        let drains = std::thread::spawn(move || {
            until(|| hangs.hangs.load(std::sync::atomic::Ordering::Relaxed) == 1);
            running.drain()
        });
        let end = local.block_on(|_| work.hang(&())).unwrap_err();
        // The handler has not failed: its server has ended.
        let by_session = RpcError::SessionClosed(CloseReason::Disconnected, Ran::Unknown);
        assert_eq!(end, Failure::Call(AsyncError::Rpc(by_session)));
        let drained = drains.join().unwrap();
        assert_eq!((drained.finished, drained.cut_off), (0, 1), "{way:?}");
    }
}
