//! Bytes that are not messages, from clients and servers that do not use this library's typed
//! layer.

use dunlin::service::{DecodeError, Failure, Fixed, META, Postcard};
use dunlin::{AsyncError, Caller, ErrorCode, Ran, ReqType, RpcError, Session, service};
use zerocopy::little_endian::U64;

use crate::typed::{KvClient, Pair, beside, connect, pair, serve_app, serve_async, serve_poll};

async fn send(cx: &Caller, session: Session, req_type: u16, bytes: &[u8]) -> AsyncError {
    let request = cx.copy(bytes).unwrap();
    let failed = cx.call(session, ReqType(req_type), request).await;
    failed.expect_err("that is not a message").error
}

/// Sends truncated and random messages, with and without metadata, to one method of each codec.
async fn send_nonsense(cx: Caller, session: Session) {
    let undecodable = AsyncError::Rpc(RpcError::rejected(ErrorCode::UNDECODABLE, true));
    let unknown = AsyncError::Rpc(RpcError::rejected(ErrorCode::UNKNOWN_TYPE, true));
    for method in [10, 13] {
        for (meta, bytes) in [
            (0, &[][..]),
            (0, &[0xFF; 15][..]),
            (META, &[][..]),
            (META, &[8, 0, 0][..]),
            (META, &[3, 0, 0, 0, 1, 0, 0, 0][..]),
            (META, &[255, 0, 0, 0, 1, 0, 0, 0, 1, 1][..]),
            (META, &[8, 0, 0, 0, 1, 0, 0, 0][..]),
        ] {
            assert_eq!(send(&cx, session, method | meta, bytes).await, undecodable);
        }
    }
    assert_eq!(send(&cx, session, 14, &[0xFF, 0xFE]).await, undecodable);
    for method in [1, 99, META, META | 99, u16::MAX] {
        assert_eq!(send(&cx, session, method, b"whatever").await, unknown);
    }
    // The server still serves.
    let kv = KvClient::new(cx, session);
    assert!(kv.sum(&pair(1, 2)).await.is_ok());
}

#[test]
fn nonsense_is_refused_by_a_service_of_futures() {
    beside(serve_async, |address| {
        let (mut local, session) = connect(address);
        local.block_on(|cx| send_nonsense(cx, session));
    });
}

#[test]
fn nonsense_is_refused_by_a_service_of_the_poll_api() {
    beside(serve_poll, |address| {
        let (mut local, session) = connect(address);
        local.block_on(|cx| send_nonsense(cx, session));
    });
}

#[test]
fn responses_that_are_not_messages_are_errors() {
    let register = |rpc: &mut dunlin::Rpc<_, Vec<u8>>| {
        for method in [10, 11, 13, 14] {
            rpc.on(ReqType(method), |answer, request, cx| {
                request.reply_bytes(cx, answer)
            });
        }
    };
    let cases: [(&[u8], DecodeError); 3] = [
        (&[], DecodeError::TooShort { len: 0, needed: 1 }),
        (&[0xFF; 9], DecodeError::Malformed),
        (&[200, 2, 3, 0], DecodeError::TooShort { len: 3, needed: 8 }),
    ];
    for (answer, error) in cases {
        beside(
            |nexus, stopped| serve_app(nexus, stopped, answer.to_vec(), register),
            |address| {
                let (mut local, session) = connect(address);
                local.block_on(|cx| async move {
                    let kv = KvClient::new(cx, session);
                    let put = kv.put(&pair(1, 2)).await;
                    assert_eq!(put, Err(Failure::BadResponse(error)));
                    let found = kv.find(&Vec::new()).await;
                    assert!(matches!(found, Err(Failure::BadResponse(_))), "{found:?}");
                });
            },
        );
    }
}

/// Methods of [`Kv`](crate::typed::Kv), declared with other codecs.
#[service(codec = Postcard)]
trait OtherCodecs {
    /// `Fixed` at the server, with 16 bytes.
    #[method(10)]
    fn put(names: Vec<String>) -> Result<u64, u8>;

    /// `Postcard` at the server, with names.
    #[method(13, codec = Fixed)]
    fn find(number: U64) -> U64;

    /// `Text` at the server, which answers with as many bytes as it gets.
    #[method(14, codec = Fixed)]
    fn shout(number: U64) -> Pair;
}

#[test]
fn a_method_with_another_codec_at_the_server_ends_with_a_clear_error() {
    for serve in [serve_async, serve_poll] {
        beside(serve, |address| {
            let (mut local, session) = connect(address);
            local.block_on(|cx| async move {
                let client = OtherCodecsClient::new(cx, session);
                let put = client.put(&vec!["blue".to_owned()]).await;
                assert_eq!(put.unwrap_err(), Failure::BadRequest(Ran::No));
                let find = client.find(&U64::new(u64::MAX)).await;
                assert_eq!(find.unwrap_err(), Failure::BadRequest(Ran::No));
                let shout = client.shout(&U64::from_bytes(*b"12345678")).await;
                let short = DecodeError::TooShort { len: 8, needed: 16 };
                assert_eq!(shout.unwrap_err(), Failure::BadResponse(short));
            });
        });
    }
}
