//! The run of a seed: faults first, then a time without faults, in which everything must work
//! again.

use dunlin_core::Nanos;

use crate::judge::Judge;
use crate::plan::{ACTIONS, CHAOS, END, SETTLE};
use crate::state::{Event, World};
use dunlin_channel::Counters;

impl World {
    /// Runs to the end, and returns the machine's counters.
    pub(crate) fn run(mut self) -> Result<(u64, Counters), String> {
        let end = CHAOS + SETTLE;
        self.run_until(end)?;
        Judge::of(&self).check_settled()?;
        if self.rng.below(2) == 0 {
            self.driver.close(self.now);
        }
        self.run_until(end + END)?;
        Judge::of(&self).check_end()?;
        Ok((self.driver.digest(), *self.driver.machine().counters()))
    }

    fn run_until(&mut self, end: Nanos) -> Result<(), String> {
        loop {
            self.steps += 1;
            if self.steps > ACTIONS {
                return Err(format!("{ACTIONS} steps, and no end"));
            }
            self.settle_actions()?;
            Judge::of(self).check()?;
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let wakeup = self.driver.machine().next_wakeup();
            let next = event.into_iter().chain(wakeup).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return Ok(());
            };
            self.now = self.now.max(next);
            if event.is_some_and(|at| at <= self.now) {
                let (_, event) = self.events.pop_first().expect("it was there");
                self.on_event(event)?;
            }
        }
    }

    fn on_event(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Call => self.begin_call(),
            Event::Cancel(call) => self.driver.cancel(call, self.now),
            Event::Strike(fault) => self.strike(fault),
            Event::Driver(event) => return self.on_driver(event),
        }
        Ok(())
    }
}
