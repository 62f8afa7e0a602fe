//! Rarely used features of a typed service: deadlines that are passed on, answers that cannot be
//! encoded, deferred requests, msgbufs that are reused.

use std::time::Duration;

use dunlin::service::{Codec, Failure, Method, Postcard, poll};
use dunlin::{
    AsyncError, CallOptions, Caller, Cx, Done, ErrorCode, Nanos, Nexus, ReqType, Request, Rpc,
    RpcError, Session, Shm, Tag, service,
};

use crate::typed::{
    KvClient, KvShout, KvStub, KvTouch, PATIENCE, Text, beside, connect, serve_app, serve_async,
    serve_poll,
};

const FAILED: AsyncError = AsyncError::Rpc(RpcError::rejected(ErrorCode::HANDLER_FAILED, true));

/// A server gets the deadline as the time that is left when the request arrives. It counts that on
/// its own clock, which started long before.
async fn pass_deadlines(cx: Caller, session: Session) {
    let span = Duration::from_millis(200);
    cx.sleep(2 * span).await;
    let kv = KvClient::new(cx, session);
    let left = loop {
        match kv.patience(&()).deadline(span).await {
            Ok(left) => break left.get(),
            // The machine was too busy to answer within the deadline.
            Err(failure) => assert!(failure.is_uncertain(), "{failure:?}"),
        }
    };
    assert!((1..=200_000).contains(&left), "{left}");
    let within = |left| kv.patience(&()).within(left);
    let left = within(Some(Nanos::from(PATIENCE))).await.unwrap().get();
    assert!((9_000_000..=10_000_000).contains(&left), "{left}");
    assert_eq!(within(None).await.unwrap().get(), 0);
}

async fn shout(cx: Caller, session: Session) {
    let kv = KvClient::new(cx, session);
    assert_eq!(
        kv.shout(&"nothing".into()).await,
        Err(Failure::Call(FAILED))
    );
    // This answer fits into the room that the codec asks for.
    assert!(kv.shout(&"a".repeat(4096)).await == Ok("A".repeat(4096)));
    let large = "a".repeat(50_000);
    let too_large = |error| matches!(error, RpcError::ResponseTooLarge { .. });
    let refused = kv.shout(&large).await;
    assert!(matches!(refused, Err(Failure::Call(AsyncError::Rpc(it))) if too_large(it)));
    assert!(kv.shout(&large).room(50_000).await == Ok("A".repeat(50_000)));
}

#[test]
fn a_service_of_futures_knows_deadlines_and_its_limits() {
    beside(serve_async, |address| {
        let (mut local, session) = connect(address);
        local.block_on(|cx| pass_deadlines(cx, session));
        local.block_on(|cx| shout(cx, session));
    });
}

#[test]
fn a_service_of_the_poll_api_knows_deadlines_and_its_limits() {
    beside(serve_poll, |address| {
        let (mut local, session) = connect(address);
        local.block_on(|cx| pass_deadlines(cx, session));
        local.block_on(|cx| shout(cx, session));
    });
}

/// Answers requests that it has kept.
fn on_shout((): &mut (), request: Request<'_>, cx: &mut Cx<'_>) {
    let (text, _) = poll::open::<KvShout>(&request, cx).unwrap();
    let text = Text::to_owned(text);
    let held = request.defer(cx);
    poll::reply_deferred::<KvShout>(held, cx, &crate::typed::shouted(&text));
}

#[test]
fn a_request_that_was_kept_is_answered_like_any_other() {
    let register = |rpc: &mut Rpc<_, ()>| rpc.on(ReqType(14), on_shout);
    beside(
        |nexus, stopped| serve_app(nexus, stopped, (), register),
        |address| {
            let (mut local, session) = connect(address);
            local.block_on(|cx| shout(cx, session));
        },
    );
}

#[test]
fn msgbufs_come_back_with_a_value_that_cannot_be_sent_and_serve_again_with_options() {
    beside(serve_poll, |address| {
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut rpc: Rpc<Shm, Option<Done>> = nexus.endpoint(None).unwrap();
        rpc.on_completion(|last, done, _| *last = Some(done));
        let kv = KvStub(rpc.connect_blocking(address).unwrap());
        let bufs = [rpc.buf(8).unwrap(), rpc.buf(64).unwrap()];
        let options = CallOptions::default();
        let refused = kv.shout_with(&mut rpc.cx(), &"\0".into(), bufs, Tag(1), options);
        let refused = refused.unwrap_err();
        assert_eq!(refused.failure, Failure::BadValue);
        let [request, response]: [_; 2] = refused.bufs.try_into().unwrap();
        let options = CallOptions {
            deadline: Some(PATIENCE.into()),
        };
        let bufs = [request, response];
        kv.patience_with(&mut rpc.cx(), &(), bufs, Tag(2), options)
            .unwrap();
        rpc.run_until(|rpc| rpc.app().is_some());
        let done = rpc.app_mut().take().unwrap();
        let left = KvStub::patience_response(&done).unwrap().get();
        assert!((9_000_000..=10_000_000).contains(&left), "{left}");
    });
}

/// Names of methods may be keywords.
#[service(codec = Postcard)]
trait Words {
    #[method(0x7EFF)]
    fn r#type(nothing: ()) -> ();
}

#[test]
fn each_method_type_has_its_number_and_name() {
    assert_eq!(
        (KvShout::NUMBER, KvShout::NAME, KvShout::ONE_WAY),
        (14, "Kv.shout", false)
    );
    assert_eq!(
        (KvTouch::NUMBER, KvTouch::NAME, KvTouch::ONE_WAY),
        (12, "Kv.touch", true)
    );
    assert_eq!(WordsType::NAME, "Words.type");
    assert_eq!(WordsType::types(), [ReqType(0x7EFF), ReqType(0xFEFF)]);
}
