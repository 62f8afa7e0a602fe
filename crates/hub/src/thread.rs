//! A thread of a hub: an endpoint, and the channels that use it. Once a turn it handles the calls
//! that callers have posted, the events of the endpoint, and the timers that are due. Then each
//! channel that had an event acts.
//!
//! Invariant: however the thread ends, every call and every wait for a state ends, and later ones
//! fail immediately. `Drop` ends those that are left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use dunlin_channel::CallId;
use dunlin_core::{CloseReason, Done, Nanos, Rng, Session, SessionEvent};
use dunlin_mailbox::{News, Slot};
use dunlin_nexus::{EndpointBuilder, EndpointError, Rpc};
use dunlin_transport::auto::Auto;

use crate::driver::{Around, Driver, place_of};
use crate::error::ChannelError;
use crate::inbox::{Inbox, Post};
use crate::letter::{self, Letter};
use crate::names::Names;
use crate::orders::Order;
use crate::resolve::{LookUp, Resolver};
use crate::trunks::{self, Ends, Trunks};
use crate::waking::{Step, Waking};

/// Iterations for which a thread that is stopping waits for its calls to end.
const LAST_ITERATIONS: usize = 1000;

/// Counters of channels are shown this often.
const COUNT_EVERY: Nanos = Nanos::from_millis(100);

/// The call in a slot that the thread has taken.
type Running = Option<(u32, CallId)>;

pub(crate) struct Thread {
    rpc: Rpc<Auto, Inbox>,
    post: Arc<Post>,
    /// Each driver is in a box: a node of the map would keep room for eleven drivers.
    channels: BTreeMap<u32, Box<Driver>>,
    trunks: Trunks,
    names: Names,
    /// The calls of slots that were taken, by the index of the slot.
    running: Vec<Running>,
    /// Channels that had an event.
    touched: Vec<u32>,
    /// Channels whose ended calls a server may still hold.
    holding: Vec<u32>,
    /// Channels that are closed, and whose requests a server may still hold.
    closing: Vec<u32>,
    /// Channels that had an event since their counters were shown.
    uncounted: Vec<u32>,
    /// The time at which counters are shown again.
    count_at: Nanos,
    /// Empty between turns, and kept for its memory.
    done: Vec<Done>,
    /// The seeds of drivers.
    seeds: Rng,
    waking: Waking,
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
        rpc.publish_own(|inbox, out| inbox.figures.append_to(out));
        post.orders.doorbell.set(rpc.waker());
        Ok(Self {
            rpc,
            post: Arc::clone(post),
            channels: BTreeMap::new(),
            trunks: Trunks::default(),
            names: Names::default(),
            running: Vec::new(),
            touched: Vec::new(),
            holding: Vec::new(),
            closing: Vec::new(),
            uncounted: Vec::new(),
            count_at: Nanos::ZERO,
            done: Vec::new(),
            seeds: Rng::new(seed),
            waking: Waking::default(),
            is_stopped: false,
        })
    }

    pub(crate) fn run(&mut self) {
        while !self.is_stopped {
            let frames = self.rpc.iterate(Inbox::limit).frames;
            self.turn();
            self.wake_tasks(frames);
        }
        self.stop();
    }

    /// Wakes the tasks whose calls have ended, once their burst is over.
    fn wake_tasks(&mut self, frames: usize) {
        let mailbox = &self.post.mailbox;
        if mailbox.all_are_woken() {
            return;
        }
        let is_new = mailbox.has_new_burst();
        let more_come = frames > 0 && self.rpc.call_count() > 0;
        match self.waking.next(is_new, more_come, self.rpc.now()) {
            Step::Wait => {}
            Step::WakeFirst => {
                mailbox.wake_first();
                // If the woken task has not run, it may be waiting for this processor.
                if self.rpc.call_count() == 0 && mailbox.is_empty() {
                    thread::yield_now();
                }
            }
            Step::GiveWay => thread::yield_now(),
            Step::WakeAll => mailbox.wake_all(),
        }
    }

    fn turn(&mut self) {
        let now = self.rpc.now();
        self.on_orders(now);
        self.on_done(now);
        self.on_serving(now);
        self.on_events(now);
        self.on_held(now);
        // Attempts that wait come before new ones.
        self.on_turns(now);
        self.on_mail(now);
        if self.rpc.app().wakeup <= now {
            let all = self.channels.iter();
            let due = all.filter(|(_, driver)| driver.next_wakeup() <= now);
            self.touched.extend(due.map(|(id, _)| *id));
            self.rpc.app_mut().wakeup = Nanos::MAX;
            let next = self.channels.values().map(|it| it.next_wakeup()).min();
            self.wake_by(next.unwrap_or(Nanos::MAX));
        }
        self.settle(now);
        while self.on_turns(now) {
            self.settle(now);
        }
        self.wake_by(self.trunks.next_wakeup());
        self.count(now);
        self.forget_closed();
    }

    /// Shows the counters of channels, if it is time.
    fn count(&mut self, now: Nanos) {
        if self.uncounted.is_empty() {
            return;
        }
        if now < self.count_at {
            return self.wake_by(self.count_at);
        }
        self.count_at = now + COUNT_EVERY;
        for id in self.uncounted.drain(..) {
            if let Some(driver) = self.channels.get_mut(&id) {
                let more = driver.count();
                self.rpc.app_mut().figures.add(&more);
            }
        }
        let outstanding = self.rpc.call_count();
        let (channels, sessions) = (self.channels.len(), self.trunks.sessions());
        let figures = &mut self.rpc.app_mut().figures;
        figures.set(channels, sessions, outstanding);
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
            trunks: &mut self.trunks,
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
                    let seed = self.seeds.next_u64();
                    let driver = Driver::new(id, *plan, board, seed, now);
                    self.channels.insert(id, Box::new(driver));
                    self.touched.push(id);
                }
                Order::Close(id) => {
                    self.with(id, now, Driver::close);
                    self.closing.push(id);
                }
                Order::Names(id, source, names) => {
                    self.touch(id, now, |driver, _| driver.on_names(source, names, now));
                }
                Order::Name(name, found) => self.on_name(&name, found.as_deref(), now),
                Order::Wait(id, until) => {
                    self.touch(id, now, |driver, _| driver.on_wait(until));
                }
                Order::Late(id) => {
                    self.touch(id, now, |driver, _| driver.on_late());
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
        let clear = |letter: &mut Letter| letter.on_dropped(letter::kept_in(slot));
        let end = self.post.mailbox.with(slot, clear);
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
            trunks::on_serving(&mut self.trunks, &news, &mut self.rpc);
            for (channel, link) in self.trunks.members_of(news.session) {
                self.touch(channel, now, |driver, _| {
                    driver.on_serving(link, &news, now);
                });
            }
        }
    }

    fn on_events(&mut self, now: Nanos) {
        for event in std::mem::take(&mut self.rpc.app_mut().events) {
            match event {
                SessionEvent::Accepted(_) => {}
                SessionEvent::Connected(session) => self.on_connected(session, now),
                SessionEvent::Closed { session, reason } => self.on_closed(session, reason, now),
            }
        }
    }

    fn on_connected(&mut self, session: Session, now: Nanos) {
        let Ok(info) = self.rpc.session_info(session) else {
            return;
        };
        let Some((members, facts)) = self.trunks.on_opened(session, info.window) else {
            return;
        };
        for (channel, link) in members {
            self.touch(channel, now, |driver, around| {
                driver.on_connected(link, &facts, around);
            });
        }
    }

    fn on_closed(&mut self, session: Session, reason: CloseReason, now: Nanos) {
        let rpc = &mut self.rpc;
        let ended = (session, reason);
        let Some(loss) = trunks::on_closed(&mut self.trunks, ended, rpc, now) else {
            return;
        };
        for (channel, link) in loss.members.iter().copied() {
            self.touch(channel, now, |driver, around| {
                driver.on_closed(link, &loss, around);
            });
        }
    }

    /// Issues attempts that wait, while there is room; channels take turns. True if there
    /// were any.
    fn on_turns(&mut self, now: Nanos) -> bool {
        let mut were_any = false;
        while let Some((channel, link)) = self.trunks.next_turn(&mut Ends(&mut self.rpc), now) {
            were_any = true;
            self.touch(channel, now, |driver, around| driver.on_turn(link, around));
        }
        were_any
    }

    /// Forgets the channels that are closed, once no server holds anything of them.
    fn forget_closed(&mut self) {
        let (channels, figures) = (&mut self.channels, &mut self.rpc.app_mut().figures);
        self.closing.retain(|id| {
            let is_idle = channels.get(id).is_none_or(|it| it.is_idle());
            if is_idle && let Some(mut driver) = channels.remove(id) {
                figures.add(&driver.count());
            }
            !is_idle
        });
    }

    /// Lets channels act.
    fn settle(&mut self, now: Nanos) {
        let mut at = 0;
        while let Some(channel) = self.touched.get(at).copied() {
            at += 1;
            let settled = self.with(channel, now, |driver, around| {
                driver.settle(around);
                let must_count = driver.must_be_counted();
                (driver.take_look_ups(), driver.next_wakeup(), must_count)
            });
            let Some((look_ups, wakeup, must_count)) = settled else {
                continue;
            };
            if must_count {
                self.uncounted.push(channel);
            }
            self.wake_by(wakeup);
            for look_up in look_ups {
                self.look_up(channel, look_up);
            }
        }
        self.touched.clear();
    }

    /// Looks a source up, or waits for the next look-up of its name.
    fn look_up(&mut self, channel: u32, look_up: LookUp) {
        let LookUp { source, resolver } = look_up;
        match resolver.name() {
            None => self.begin_look_up(resolver, move |found| Order::Names(channel, source, found)),
            Some(name) => {
                if self.names.on_ask(name, (channel, source)) {
                    let name = Arc::clone(name);
                    let order = move |found| Order::Name(Arc::clone(&name), found);
                    self.begin_look_up(resolver, order);
                }
            }
        }
    }

    /// Looks addresses up in a thread of its own, because that may take half a minute.
    fn begin_look_up(
        &self,
        resolver: Resolver,
        order: impl Fn(Option<Vec<String>>) -> Order + Clone + Send + 'static,
    ) {
        let (post, failed) = (Arc::clone(&self.post), order.clone());
        let looking = thread::Builder::new().name("dunlin-names".into());
        let spawned = looking.spawn(move || post.orders.send(order(resolver.run())));
        if spawned.is_err() {
            self.post.orders.send(failed(None));
        }
    }

    fn on_name(&mut self, name: &Arc<str>, found: Option<&[String]>, now: Nanos) {
        let (askers, must_begin) = self.names.on_end(name);
        if must_begin {
            let (resolver, name) = (Resolver::Name(Arc::clone(name)), Arc::clone(name));
            self.begin_look_up(resolver, move |found| Order::Name(Arc::clone(&name), found));
        }
        for (channel, source) in askers {
            let found = found.map(<[String]>::to_vec);
            self.touch(channel, now, |driver, _| {
                driver.on_names(source, found, now)
            });
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
        mailbox.end_taken(|letter| letter.on_end(Err(ChannelError::abandoned()), 0));
        mailbox.close();
        orders.close();
        self.channels.values().for_each(|it| it.abandon());
    }
}
