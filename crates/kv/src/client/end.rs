//! Results, as the program gets them.

use dunlin_core::Cx;
use dunlin_msgbuf::MsgBuf;

use super::options::Token;
use crate::error::Error;
use crate::wire::{Answer, Figures, FoundItem, HotKeys, Scanned, Status};

/// The end of an operation.
#[derive(Debug)]
pub struct End {
    /// The operation.
    pub token: Token,
    /// Its result.
    pub result: Result<Reply, Error>,
}

/// The result of an operation that did not fail.
#[derive(Debug)]
pub enum Reply {
    /// The item of a get.
    Found(Found),
    /// There is no item. Only gets end like this; other operations fail with [`Error::Absent`].
    Missing,
    /// The item has this version now.
    Written(u64),
    /// The counter has this number and this version now.
    Counted(u64, u64),
    /// A delete, touch or flush has succeeded.
    Done,
    /// The items of a get of many keys, in the order of the keys. An error concerns one key:
    /// [`Error::MessageTooLong`], if its value does not fit into a message of the server.
    Items(Vec<Result<Option<Item>, Error>>),
    /// The figures of a partition.
    Figures(Box<Figures>),
    /// Keys of a partition, and the place at which the scan continues, if it does.
    Keys(Box<(Vec<Vec<u8>>, Option<u64>)>),
    /// The keys of a partition that clients read most.
    Hot(Box<HotKeys>),
}

// Each end is moved several times, so it should be small.
const _: () = assert!(size_of::<End>() == 32);

/// Ends that the program has not taken yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The oldest ends, in reverse order: popping the last one is faster than taking the first of a
    /// ring.
    turned: Vec<End>,
    /// Ends that arrived after these.
    fresh: Vec<End>,
}

impl Ends {
    #[inline]
    pub(super) fn push(&mut self, end: End) {
        self.fresh.push(end);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<End> {
        if self.turned.is_empty() {
            self.turn();
        }
        self.turned.pop()
    }

    #[inline(never)]
    fn turn(&mut self) {
        std::mem::swap(&mut self.turned, &mut self.fresh);
        self.turned.reverse();
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.turned.is_empty() && self.fresh.is_empty()
    }
}

/// An item of a get. If it fits into one message, it still lies in the message that brought it.
#[derive(Debug)]
pub struct Found(Content);

#[derive(Debug)]
enum Content {
    /// A response that is an item with its whole value.
    Message(MsgBuf),
    Joined(Box<Item>),
}

/// An item without its message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The writer's flags.
    pub flags: u32,
    /// Its version.
    pub version: u64,
    /// Seconds until it expires; 0: never.
    pub lifetime: u32,
    /// Its value.
    pub value: Vec<u8>,
}

impl Found {
    /// Makes an item from a message that is known to be an item with its whole value.
    #[inline]
    pub(super) const fn in_message(message: MsgBuf) -> Self {
        Self(Content::Message(message))
    }

    /// Makes an item that arrived in slices.
    pub(crate) fn joined(item: Item) -> Self {
        Self(Content::Joined(Box::new(item)))
    }

    /// The value.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        match &self.0 {
            Content::Message(message) => FoundItem::value_of(message.data()),
            Content::Joined(item) => &item.value,
        }
    }

    /// The writer's flags.
    #[must_use]
    pub fn flags(&self) -> u32 {
        match &self.0 {
            Content::Message(message) => item_of(message).flags,
            Content::Joined(item) => item.flags,
        }
    }

    /// The version, for a compare-and-set.
    #[must_use]
    pub fn version(&self) -> u64 {
        match &self.0 {
            Content::Message(message) => item_of(message).version,
            Content::Joined(item) => item.version,
        }
    }

    /// Seconds until it expires; 0: never.
    #[must_use]
    pub fn lifetime(&self) -> u32 {
        match &self.0 {
            Content::Message(message) => item_of(message).lifetime,
            Content::Joined(item) => item.lifetime,
        }
    }

    /// Copies the item out of its message.
    #[must_use]
    pub fn into_item(self) -> Item {
        match self.0 {
            Content::Message(message) => Item::of(&item_of(&message)),
            Content::Joined(item) => *item,
        }
    }
}

/// The item in a message that was checked.
fn item_of(message: &MsgBuf) -> FoundItem<'_> {
    match Answer::decode(message.data()) {
        Ok(Answer::Found(item)) => item,
        _ => unreachable!("the client has read it before"),
    }
}

impl Item {
    /// Makes an item with the part of its value that the answer has.
    pub(crate) fn of(item: &FoundItem<'_>) -> Self {
        Self {
            flags: item.flags,
            version: item.version,
            lifetime: item.lifetime,
            value: item.value.to_vec(),
        }
    }
}

impl Reply {
    /// The result of a request for a whole partition, from the bytes of its answer.
    pub(crate) fn of_whole(bytes: &[u8]) -> Result<Self, Status> {
        if let Ok(scanned) = Scanned::decode(bytes) {
            return Ok(Self::Keys(Box::new(scanned)));
        }
        if let Ok(hot) = HotKeys::decode(bytes) {
            return Ok(Self::Hot(Box::new(hot)));
        }
        match (Figures::decode(bytes), Answer::decode(bytes)) {
            (Ok(figures), _) => Ok(Self::Figures(Box::new(figures))),
            (_, Ok(Answer::Done)) => Ok(Self::Done),
            (_, Ok(Answer::Refused(status))) => Err(status),
            _ => Err(Status::Gone),
        }
    }
}

/// The expected result of an operation, for clients that know which operation they have begun. Any
/// other result is not an answer of this protocol.
#[cfg(feature = "nexus")]
impl Reply {
    pub(crate) fn found(self) -> Result<Option<Found>, Error> {
        match self {
            Self::Found(found) => Ok(Some(found)),
            Self::Missing => Ok(None),
            _ => Err(Error::Incompatible),
        }
    }

    pub(crate) fn items(self) -> Result<Vec<Result<Option<Item>, Error>>, Error> {
        match self {
            Self::Items(items) => Ok(items),
            _ => Err(Error::Incompatible),
        }
    }

    pub(crate) fn written(self) -> Result<u64, Error> {
        match self {
            Self::Written(version) => Ok(version),
            _ => Err(Error::Incompatible),
        }
    }

    pub(crate) fn counted(self) -> Result<(u64, u64), Error> {
        match self {
            Self::Counted(number, version) => Ok((number, version)),
            _ => Err(Error::Incompatible),
        }
    }

    pub(crate) fn figures(self) -> Result<Figures, Error> {
        match self {
            Self::Figures(figures) => Ok(*figures),
            _ => Err(Error::Incompatible),
        }
    }

    pub(crate) fn hot(self) -> Result<HotKeys, Error> {
        match self {
            Self::Hot(hot) => Ok(*hot),
            _ => Err(Error::Incompatible),
        }
    }

    pub(crate) fn keys(self) -> Result<(Vec<Vec<u8>>, Option<u64>), Error> {
        match self {
            Self::Keys(scanned) => Ok(*scanned),
            _ => Err(Error::Incompatible),
        }
    }
}

impl End {
    /// Returns the memory of a result to the endpoint's pool, which is faster than dropping it.
    #[inline]
    pub fn recycle(self, cx: &mut Cx<'_>) {
        match self.result {
            Ok(Reply::Found(Found(Content::Message(message)))) => cx.recycle(Some(message)),
            // `forget`, because checking that there is nothing to drop would cost a call.
            Ok(written @ Reply::Written(_)) => std::mem::forget(written),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
