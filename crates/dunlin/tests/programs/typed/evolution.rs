//! Old clients with new servers, and the reverse: the promises of `docs/services.md`.

use dunlin::service::{Context, DecodeError, Failure, Fixed, Growing, Grown, Postcard};
use dunlin::{AsyncError, CloseReason, Cx, Local, Ran, RpcError, Session, Shm, service};
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::typed::{beside, connect, serve_app};

#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Debug,
)]
#[repr(C)]
struct Item {
    id: U32,
}

/// The item, a version later.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Debug,
)]
#[repr(C)]
struct Item2 {
    id: U32,
    weight: U32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Note {
    text: String,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Note2 {
    text: String,
    author: String,
}

#[service(codec = Fixed)]
trait Old {
    #[method(1)]
    fn weigh(item: Item) -> Item;

    #[method(2)]
    fn strict(item: Item) -> Item;

    #[method(3, codec = Postcard)]
    fn note(note: Note) -> u32;

    #[method(4)]
    fn fails(item: Item) -> Result<Item, Item>;
}

#[service(codec = Fixed)]
trait New {
    /// Also called by clients that know only `Item`.
    #[method(1, codec = Growing::<4>)]
    fn weigh(item: Item2) -> Item2;

    #[method(2)]
    fn strict(item: Item2) -> Item2;

    #[method(3, codec = Postcard)]
    fn note(note: Note2) -> u32;

    #[method(4)]
    fn fails(item: Item2) -> Result<Item2, Item2>;

    #[method(5)]
    fn added(item: Item2) -> ();
}

struct OldApp;
struct NewApp;

impl OldPoll for OldApp {
    fn weigh(&mut self, item: &Item, _: &mut Cx<'_>, _: Context<'_>) -> Item {
        *item
    }

    fn strict(&mut self, item: &Item, _: &mut Cx<'_>, _: Context<'_>) -> Item {
        *item
    }

    fn note(&mut self, note: Note, _: &mut Cx<'_>, _: Context<'_>) -> u32 {
        u32::try_from(note.text.len()).unwrap()
    }

    fn fails(&mut self, item: &Item, _: &mut Cx<'_>, _: Context<'_>) -> Result<Item, Item> {
        Err(*item)
    }
}

impl NewPoll for NewApp {
    fn weigh(&mut self, item: Grown<'_, Item2>, _: &mut Cx<'_>, _: Context<'_>) -> Item2 {
        assert!(matches!(item, Grown::Whole(_)) || item.weight.get() == 0);
        *item
    }

    fn strict(&mut self, item: &Item2, _: &mut Cx<'_>, _: Context<'_>) -> Item2 {
        *item
    }

    fn note(&mut self, note: Note2, _: &mut Cx<'_>, _: Context<'_>) -> u32 {
        u32::try_from(note.text.len() + note.author.len()).unwrap()
    }

    fn fails(&mut self, item: &Item2, _: &mut Cx<'_>, _: Context<'_>) -> Result<Item2, Item2> {
        Err(*item)
    }

    fn added(&mut self, _: &Item2, _: &mut Cx<'_>, _: Context<'_>) {}
}

const ITEM: Item = Item { id: U32::new(7) };
const ITEM2: Item2 = Item2 {
    id: U32::new(7),
    weight: U32::new(70),
};

fn with_old(task: impl FnOnce(Local<Shm>, Session)) {
    beside(
        |nexus, stopped| serve_app(nexus, stopped, OldApp, OldPoll::register),
        |address| {
            let (local, session) = connect(address);
            task(local, session);
        },
    );
}

fn with_new(task: impl FnOnce(Local<Shm>, Session)) {
    beside(
        |nexus, stopped| serve_app(nexus, stopped, NewApp, NewPoll::register),
        |address| {
            let (local, session) = connect(address);
            task(local, session);
        },
    );
}

#[test]
fn an_old_client_works_with_a_new_server() {
    with_new(|mut local, session| {
        local.block_on(|cx| async move {
            let old = OldClient::new(cx, session);
            // The server reads a field that the client lacks as zero; the client skips fields that
            // it does not know.
            assert_eq!(old.weigh(&ITEM).await, Ok(ITEM));
            // This server requires a field that the client lacks.
            assert_eq!(old.strict(&ITEM).await, Err(Failure::BadRequest(Ran::No)));
            let note = Note {
                text: "word".into(),
            };
            assert_eq!(old.note(&note).await, Err(Failure::BadRequest(Ran::No)));
        });
    });
}

#[test]
fn a_new_client_works_with_an_old_server() {
    with_old(|mut local, session| {
        local.block_on(|cx| async move {
            let new = NewClient::new(cx, session);
            let shorter = Item2 {
                weight: U32::new(0),
                ..ITEM2
            };
            assert_eq!(new.weigh(&ITEM2).await, Ok(shorter));
            let short = DecodeError::TooShort { len: 4, needed: 8 };
            assert_eq!(new.strict(&ITEM2).await, Err(Failure::BadResponse(short)));
            assert_eq!(new.fails(&ITEM2).await, Err(Failure::BadResponse(short)));
            let (text, author) = ("word".into(), "me".into());
            assert_eq!(new.note(&Note2 { text, author }).await, Ok(4));
            assert_eq!(
                new.added(&ITEM2).await,
                Err(Failure::UnknownMethod(Ran::No))
            );
        });
    });
}

#[test]
fn errors_grow_like_values() {
    with_new(|mut local, session| {
        local.block_on(|cx| async move {
            let old = OldClient::new(cx.clone(), session);
            assert_eq!(old.fails(&ITEM).await, Err(Failure::BadRequest(Ran::No)));
            let new = NewClient::new(cx, session);
            assert_eq!(new.fails(&ITEM2).await, Err(Failure::Method(ITEM2)));
            assert_eq!(new.weigh(&ITEM2).await, Ok(ITEM2));
        });
    });
}

#[test]
fn every_failure_has_a_text() {
    let failures: [(Failure<u8>, &str); 4] = [
        (
            Failure::UnknownMethod(Ran::No),
            "the server has no such method",
        ),
        (
            Failure::BadRequest(Ran::No),
            "the server could not decode the request",
        ),
        (Failure::Method(3), "3"),
        (
            Failure::Call(AsyncError::Rpc(RpcError::PeerFailed(Ran::Unknown))),
            "the peer has failed; connect again",
        ),
    ];
    for (failure, text) in failures {
        assert_eq!(failure.to_string(), text);
    }
    let short = DecodeError::TooShort { len: 4, needed: 8 };
    let said = Failure::<u8>::BadResponse(short).to_string();
    assert!(said.contains("4 bytes") && said.contains("older"), "{said}");
}

#[test]
fn a_failure_is_uncertain_if_the_handler_may_have_run() {
    let rpc = |error| Failure::Call(AsyncError::Rpc(error));
    let reason = CloseReason::EndpointClosed;
    let failures: [(Failure<u8>, bool); 10] = [
        (Failure::BadResponse(DecodeError::Malformed), true),
        (rpc(RpcError::DeadlinePassed(Ran::Unknown)), true),
        (rpc(RpcError::Cancelled(Ran::Unknown)), true),
        (rpc(RpcError::PeerFailed(Ran::Unknown)), true),
        (rpc(RpcError::SessionClosed(reason, Ran::Unknown)), true),
        (Failure::Method(3), false),
        (Failure::UnknownMethod(Ran::No), false),
        (Failure::BadRequest(Ran::No), false),
        (Failure::BadValue, false),
        (Failure::Call(AsyncError::NoSession), false),
    ];
    for (failure, is_uncertain) in failures {
        assert_eq!(failure.is_uncertain(), is_uncertain, "{failure:?}");
    }
}
