//! The part of a channel that its calls use: its number, its thread, and its places.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dunlin_mailbox::{Places, Slot};

use crate::board::Board;
use crate::hub::Hub;
use crate::inbox::Post;
use crate::letter::{Mailbox, kept_in};
use crate::orders::Order;
use crate::plan::ChannelOptions;

/// A handle of a channel, which closes when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Handle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u32,
    post: Arc<Post>,
    board: Arc<Board>,
    options: ChannelOptions,
    places: Arc<Places>,
    /// The bytes of the last request's front. The next front probably has as many.
    gap: AtomicUsize,
    /// Keeps the hub: its threads end with the last channel.
    hub: Hub,
}

impl Handle {
    /// Makes the first handle of a channel, after its thread got the order to open it.
    pub(crate) fn new(
        (id, post): (u32, Arc<Post>),
        board: Arc<Board>,
        options: ChannelOptions,
        hub: Hub,
    ) -> Self {
        Self(Arc::new(Inner {
            id,
            post,
            board,
            options,
            places: Places::new(u32::try_from(options.queue).unwrap_or(u32::MAX)),
            gap: AtomicUsize::new(0),
            hub,
        }))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.0.hub
    }

    pub(crate) fn board(&self) -> &Arc<Board> {
        &self.0.board
    }

    pub(crate) fn options(&self) -> &ChannelOptions {
        &self.0.options
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.0.options.deadline
    }

    pub(crate) fn places(&self) -> &Arc<Places> {
        &self.0.places
    }

    /// The bytes that the front of the next request will probably have.
    pub(crate) fn gap(&self) -> usize {
        self.0.gap.load(Ordering::Relaxed)
    }

    /// Notes the bytes of a request's front.
    pub(crate) fn note_gap(&self, gap: usize) {
        if gap != self.gap() {
            self.0.gap.store(gap, Ordering::Relaxed);
        }
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.0.post.mailbox
    }

    /// Sends an order to the channel's thread.
    pub(crate) fn order(&self, order: Order) {
        self.0.post.orders.send(order);
    }

    /// Whether both are handles of one channel.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Releases the slot of a call that was never posted.
    pub(crate) fn take_back(&self, slot: Slot) {
        self.mailbox()
            .with(slot, |letter| drop(letter.on_dropped(kept_in(slot))));
        self.mailbox().release(slot);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.post.orders.send(Order::Close(self.id));
    }
}
