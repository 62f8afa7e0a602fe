//! A thread of a hub: an endpoint, and the channels that use it. Once a turn it handles the calls
//! that callers have posted, the events of the endpoint, and the timers that are due. Then each
//! channel that had an event acts.
//!
//! Invariant: however the thread ends, every call and every wait for a state ends, and later ones
//! fail immediately. `Drop` ends those that are left.

use std::collections::BTreeMap;
use std::sync::Arc;

use dunlin_channel::{CallId, LinkId};
use dunlin_core::{Done, Nanos, Session, SessionEvent};
use dunlin_mailbox::{News, Slot};
use dunlin_nexus::{EndpointBuilder, EndpointError, Rpc};
use dunlin_transport::auto::Auto;

use crate::driver::{Around, Driver, place_of};
use crate::error::ChannelError;
use crate::inbox::{Inbox, Post};
use crate::letter::{self, Letter};
use crate::orders::Order;
use crate::resolve::LookUp;

/// Iterations for which a thread that is stopping waits for its calls to end.
const LAST_ITERATIONS: usize = 1000;

/// The call of a slot that was taken.
type Running = Option<(u32, CallId)>;

pub(crate) struct Thread {
    rpc: Rpc<Auto, Inbox>,
    post: Arc<Post>,
    channels: BTreeMap<u32, Driver>,
    sessions: BTreeMap<Session, (u32, LinkId)>,
    /// The calls of slots that were taken, by the index of the slot.
    running: Vec<Running>,
    /// Channels that had an event.
    touched: Vec<u32>,
    /// Channels whose ended calls a server may still hold.
    holding: Vec<u32>,
    /// Empty between turns, and kept for its memory.
    done: Vec<Done>,
    seed: u64,
    is_stopped: bool,
}

impl Thread {
    pub(crate) fn new(
        builder: EndpointBuilder<Auto>,
        post: &Arc<Post>,
        seed: u64,
    ) -> Result<Self, EndpointError> {
        let mut rpc = builder.build(Inbox::new(post))?;
        rpc.on_completion(|inbox, done, _| inbox.done.push(done));
        rpc.on_session(|inbox, event, _| inbox.events.push(event));
        rpc.on_serving(|inbox, serving, _| inbox.serving.push(serving));
        post.orders.doorbell.set(rpc.waker());
        Ok(Self {
            rpc,
            post: Arc::clone(post),
            channels: BTreeMap::new(),
            sessions: BTreeMap::new(),
            running: Vec::new(),
            touched: Vec::new(),
            holding: Vec::new(),
            done: Vec::new(),
            seed,
            is_stopped: false,
        })
    }

    pub(crate) fn run(&mut self) {
        while !self.is_stopped {
            self.rpc.iterate(Inbox::limit);
            self.turn();
        }
        self.stop();
    }

    fn turn(&mut self) {
        let now = self.rpc.now();
        self.on_orders(now);
        self.on_done(now);
        self.on_serving(now);
        self.on_events(now);
        self.on_held(now);
        self.on_mail(now);
        if self.rpc.app().wakeup <= now {
            let due = |(id, driver): (&u32, &Driver)| (driver.next_wakeup() <= now).then_some(*id);
            self.touched.extend(self.channels.iter().filter_map(due));
            self.rpc.app_mut().wakeup = Nanos::MAX;
            let next = self.channels.values().map(Driver::next_wakeup).min();
            self.wake_by(next.unwrap_or(Nanos::MAX));
        }
        self.settle(now);
    }

    fn wake_by(&mut self, at: Nanos) {
        let wakeup = &mut self.rpc.app_mut().wakeup;
        *wakeup = at.min(*wakeup);
    }

    /// Runs an event of a channel, if the channel exists.
    fn with<R>(
        &mut self,
        channel: u32,
        now: Nanos,
        event: impl FnOnce(&mut Driver, &mut Around<'_>) -> R,
    ) -> Option<R> {
        let driver = self.channels.get_mut(&channel)?;
        let mut around = Around {
            rpc: &mut self.rpc,
            mailbox: &self.post.mailbox,
            sessions: &mut self.sessions,
            now,
        };
        Some(event(driver, &mut around))
    }

    /// Runs an event of a channel, and lets the channel act at the end of the turn.
    fn touch<R>(
        &mut self,
        channel: u32,
        now: Nanos,
        event: impl FnOnce(&mut Driver, &mut Around<'_>) -> R,
    ) -> Option<R> {
        if self.touched.last() != Some(&channel) {
            self.touched.push(channel);
        }
        self.with(channel, now, event)
    }

    fn on_orders(&mut self, now: Nanos) {
        if !self.post.orders.any() {
            return;
        }
        for order in self.post.orders.take() {
            match order {
                Order::Open(id, plan, board) => {
                    self.seed = self
                        .seed
                        .wrapping_mul(0x5851_F42D_4C95_7F2D)
                        .wrapping_add(1);
                    let driver = Driver::new(id, *plan, board, self.seed, now);
                    self.channels.insert(id, driver);
                    self.touched.push(id);
                }
                Order::Close(id) => {
                    self.with(id, now, Driver::close);
                    self.channels.remove(&id);
                }
                Order::Names(id, source, names) => {
                    self.touch(id, now, |driver, _| driver.on_names(source, names, now));
                }
                Order::Wait(id, until) => {
                    self.touch(id, now, |driver, _| driver.on_wait(until));
                }
                Order::Stop => self.is_stopped = true,
                #[cfg(test)]
                Order::Panic => panic!("a planted panic"),
            }
        }
    }

    fn on_mail(&mut self, now: Nanos) {
        let post = Arc::clone(&self.post);
        post.mailbox.take(|news| match news {
            News::Posted(slot) => self.on_posted(slot, now),
            News::Dropped(slot) => self.on_dropped(slot, now),
        });
    }

    fn on_posted(&mut self, slot: Slot, now: Nanos) {
        let read = |letter: &mut Letter| (letter.channel, letter.terms);
        let (channel, terms) = self.post.mailbox.with(slot, read);
        if !self.channels.contains_key(&channel) {
            // The channel was opened after the orders were read.
            self.on_orders(now);
        }
        let id = self.touch(channel, now, |driver, around| {
            driver.on_call(slot, terms, around)
        });
        match id.flatten() {
            Some(id) => {
                if slot.index() >= self.running.len() {
                    self.running.resize(slot.index() + 1, None);
                }
                self.running[slot.index()] = Some((channel, id));
            }
            None if !self.channels.contains_key(&channel) => {
                letter::end(&self.post.mailbox, slot, Err(ChannelError::Closed));
            }
            None => {}
        }
    }

    fn on_dropped(&mut self, slot: Slot, now: Nanos) {
        let running = self.running.get_mut(slot.index());
        if let Some((channel, id)) = running.and_then(Option::take) {
            self.touch(channel, now, |driver, around| driver.on_drop(id, around));
        }
        let end = self.post.mailbox.with(slot, Letter::on_dropped);
        if let Some(Ok(response)) = end {
            self.rpc.cx_again().recycle([response]);
        }
        self.post.mailbox.release(slot);
    }

    fn on_done(&mut self, now: Nanos) {
        if self.rpc.app().done.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.done);
        std::mem::swap(&mut all, &mut self.rpc.app_mut().done);
        for done in all.drain(..) {
            let (channel, index) = place_of(done.tag);
            if !self.channels.contains_key(&channel) {
                self.rpc.cx_again().recycle([done.request, done.response]);
                continue;
            }
            let holds = self.touch(channel, now, |driver, around| {
                let held = driver.holds();
                driver.on_done(index, done, around);
                driver.holds() && !held
            });
            if holds == Some(true) {
                self.holding.push(channel);
            }
        }
        self.done = all;
    }

    /// Looks at requests that servers may still hold.
    fn on_held(&mut self, now: Nanos) {
        let mut at = 0;
        while let Some(channel) = self.holding.get(at).copied() {
            let checked = self.with(channel, now, |driver, around| {
                let have_ended = driver.check_held(around);
                (have_ended, driver.holds())
            });
            let (have_ended, holds) = checked.unwrap_or_default();
            if have_ended {
                self.touched.push(channel);
            }
            match holds {
                true => at += 1,
                false => drop(self.holding.swap_remove(at)),
            }
        }
    }

    /// Handles the services that servers have announced, which they do before their sessions are
    /// ready.
    fn on_serving(&mut self, now: Nanos) {
        for news in std::mem::take(&mut self.rpc.app_mut().serving) {
            if let Some((channel, link)) = self.sessions.get(&news.session).copied() {
                self.touch(channel, now, |driver, _| {
                    driver.on_serving(link, &news, now)
                });
            }
        }
    }

    fn on_events(&mut self, now: Nanos) {
        for event in std::mem::take(&mut self.rpc.app_mut().events) {
            let session = match event {
                SessionEvent::Connected(session) | SessionEvent::Closed { session, .. } => session,
                SessionEvent::Accepted(_) => continue,
            };
            let Some((channel, link)) = self.sessions.get(&session).copied() else {
                continue;
            };
            self.touch(channel, now, |driver, around| match event {
                SessionEvent::Closed { reason, .. } => driver.on_closed(link, reason, around),
                _ => driver.on_connected(link, around),
            });
        }
    }

    /// Lets channels act.
    fn settle(&mut self, now: Nanos) {
        let mut at = 0;
        while let Some(channel) = self.touched.get(at).copied() {
            at += 1;
            let settled = self.with(channel, now, |driver, around| {
                driver.settle(around);
                (driver.take_look_ups(), driver.next_wakeup())
            });
            let Some((look_ups, wakeup)) = settled else {
                continue;
            };
            self.wake_by(wakeup);
            for look_up in look_ups {
                self.look_up(channel, look_up);
            }
        }
        self.touched.clear();
    }

    /// Looks a source up in a thread of its own, because one name may take half a minute.
    fn look_up(&self, channel: u32, look_up: LookUp) {
        let post = Arc::clone(&self.post);
        let source = look_up.source;
        let looking = std::thread::Builder::new().name("dunlin-names".into());
        let spawned = looking.spawn(move || {
            post.orders
                .send(Order::Names(channel, source, look_up.run()));
        });
        if spawned.is_err() {
            self.post.orders.send(Order::Names(channel, source, None));
        }
    }

    /// Ends calls and sessions, and lets the servers know.
    fn stop(&mut self) {
        let now = self.rpc.now();
        let ids: Vec<u32> = self.channels.keys().copied().collect();
        for id in ids {
            self.with(id, now, Driver::close);
        }
        self.channels.clear();
        for _ in 0..LAST_ITERATIONS {
            self.rpc.iterate(|_| Nanos::ZERO);
            if self.rpc.call_count() == 0 {
                break;
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // After a panic there may be calls that no channel has ended, or even knows.
        let Post { mailbox, orders } = &*self.post;
        mailbox.end_taken(|letter| letter.on_end(Err(ChannelError::abandoned())));
        mailbox.close();
        orders.close();
        self.channels.values().for_each(Driver::abandon);
    }
}
