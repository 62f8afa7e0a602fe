//! Counters: operations that change one, and may create it.

use dunlin_store::{CounterError, Delta, Key, Seconds, Verb, Write};

use crate::figures::Finding;
use crate::number;
use crate::operation::{Count, CountError, Counted, Step};
use crate::partition::Partition;

impl Partition<'_> {
    pub(super) fn count(&mut self, count: &Count<'_>, now: Seconds) -> Result<Counted, CountError> {
        let key = self.key(count.key);
        let delta = match count.is_down {
            true => Delta::Down(count.by),
            false => Delta::Up(count.by),
        };
        let room = self.make_room(&key, count.steps.latest(false), now);
        room.map_err(|_| CountError::NoMemory)?;
        let result = match self.table.count(&key, delta, count.if_version, now) {
            Ok((number, version)) => {
                self.renumber(&key, count.version, now);
                Ok(Counted {
                    number,
                    version: count.version.unwrap_or(version),
                    expiry: None,
                    is_new: false,
                })
            }
            Err(CounterError::Absent) if count.steps.makes_item() => {
                self.make_counter(&key, count, now)
            }
            Err(CounterError::Absent) => Err(CountError::Missing),
            Err(CounterError::VersionDiffers) => Err(CountError::Differs),
            Err(CounterError::NotANumber) => Err(CountError::NotANumber),
            Err(CounterError::NoMemory) => Err(CountError::NoMemory),
        };
        let finding = match result {
            Ok(_) => Finding::Hit,
            Err(CountError::Missing) => Finding::Miss,
            Err(_) => Finding::Neither,
        };
        self.ledger.figures.on_count(count.is_down, finding);
        let mut counted = result?;
        counted.expiry = self.table.peek(&key, now).and_then(|item| item.expiry());
        let steps = count.steps.iter();
        let after = steps.fold(counted.expiry, |expiry, step: Step| {
            step.expiry(expiry, counted.is_new)
        });
        if after != counted.expiry {
            self.change_expiry(&key, after, now);
        }
        Ok(counted)
    }

    fn make_counter(
        &mut self,
        key: &Key<'_>,
        count: &Count<'_>,
        now: Seconds,
    ) -> Result<Counted, CountError> {
        let mut digits = Vec::new();
        number::write(&mut digits, count.initial);
        let write = Write {
            verb: Verb::Add,
            version: count.version,
            ..Write::set(&digits)
        };
        let written = self.table.write(key, &write, now);
        let version = written.map_err(|_| CountError::NoNewItem)?;
        if self.make_room(key, count.steps.latest(true), now).is_err() {
            self.take_back(key, now);
            return Err(CountError::NoNewItem);
        }
        Ok(Counted {
            number: count.initial,
            version,
            expiry: None,
            is_new: true,
        })
    }
}
