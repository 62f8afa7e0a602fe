//! The programs of `docs/poll.md`.

mod store {
    include!(concat!(env!("OUT_DIR"), "/poll_1.rs"));

    use dunlin::{Channel, ChannelError, RpcError, service};

    /// The code with which the server rejects a call.
    fn rejection(channel: &Channel, of: ReqType, body: &[u8]) -> ErrorCode {
        use ChannelError::Call;
        match crate::block_on(channel.call(of, body)) {
            Err(Call {
                error: service::Error::Rpc(RpcError::Rejected(code, _)),
                ..
            }) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_store_answers_and_refuses() {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let address = nexus.address();
        // It serves until the process ends.
        std::thread::spawn(move || serve(&nexus).unwrap());
        let channel = crate::open(address);
        let call = |kind, body: &[u8]| crate::block_on(channel.call(kind, body));
        assert_eq!(&*call(PUT, b"the key:value").unwrap(), b"");
        assert_eq!(&*call(GET, b"the key:").unwrap(), b"value");
        assert_eq!(rejection(&channel, GET, b"another:"), NO_SUCH_KEY);
        let short = ErrorCode::application(2);
        assert_eq!(rejection(&channel, PUT, b"short"), short);
    }
}

mod client {
    include!(concat!(env!("OUT_DIR"), "/poll_2.rs"));

    #[test]
    fn a_client_counts_the_keys_that_it_finds() {
        let (_running, address) = crate::polled(|rpc| {
            rpc.on(GET, |(), request, cx| match request.data()[0] {
                3 => request.reject(cx, dunlin::ErrorCode::application(1)),
                _ => request.reply_bytes(cx, b"value"),
            });
        });
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        assert_eq!(get_all(&nexus, address).unwrap(), 3);
    }
}

mod brief {
    include!(concat!(env!("OUT_DIR"), "/poll_3.rs"));

    use dunlin::{Auto, Nexus, Rpc, RpcError};

    #[derive(Default)]
    struct Client {
        ended: Option<RpcError>,
        timed: Vec<TimerToken>,
    }

    #[test]
    fn a_call_is_cancelled_and_a_timer_runs_once() {
        let (_running, address) = crate::named(GET);
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut rpc: Rpc<Auto, Client> = nexus.endpoint(Client::default()).unwrap();
        rpc.on_completion(|client, done, _| client.ended = done.result.err());
        rpc.on_timer(|client, token, _| client.timed.push(token));
        let session = rpc.connect_blocking(address).unwrap();
        let (request, response) = (rpc.buf(8).unwrap(), rpc.buf(64).unwrap());
        call_briefly(&mut rpc.cx(), session, request, response);
        rpc.run_until(|rpc| rpc.app().ended.is_some() && !rpc.app().timed.is_empty());
        assert!(matches!(rpc.app().ended, Some(RpcError::Cancelled(_))));
        assert_eq!(rpc.app().timed, [TimerToken(7)]);
    }
}
