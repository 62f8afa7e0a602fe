//! The state of an endpoint whose partition also serves memcached's clients.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use dunlin_core::{Batch, BatchItem, Cx, Nanos, Refuse, Ticket};
use dunlin_kv::{Figures, Host, Partition};
use dunlin_memcached::{BurstRun, Ledger, Process, Server, Standing};
use dunlin_nexus::{Open, Rpc};
use dunlin_store::Seconds;
use dunlin_wire::ErrorCode;

use crate::hall::Hall;
use crate::lanes::{ERRANDS, Lanes, News};

/// Memory for answers that is kept between bursts of errands.
const KEPT: usize = 1 << 17;

/// The longest answer to a burst for which the endpoint prepares a buffer.
const INLINE: usize = 1024;

/// A partition with the figures of memcached's commands.
#[derive(Debug)]
pub struct Desk {
    partition: Partition,
    ledger: Ledger,
    /// Bursts of errands with a long value that is being written in parts.
    bursts: Vec<(Ticket, BurstRun)>,
    /// Memory in which the answers to a burst are built.
    answers: Vec<u8>,
    /// Events of the endpoint for the front.
    news: VecDeque<News>,
}

impl Desk {
    /// Makes the state of an endpoint of a process.
    #[must_use]
    pub fn new(partition: Partition, hall: &Hall) -> Self {
        Self {
            partition,
            ledger: hall.ledger(),
            bursts: Vec::new(),
            answers: Vec::new(),
            news: VecDeque::new(),
        }
    }

    /// The partition's present figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.partition.figures()
    }

    /// The values of the figures that tools show, as [`Partition::published`] has them.
    #[must_use]
    pub fn published(&self) -> impl IntoIterator<Item = u64> + use<> {
        self.partition.published()
    }

    /// Sets the table's clock, in seconds since 1970. From then on it follows the endpoint's clock,
    /// so a change of the system's clock does not let items expire.
    pub(crate) fn on_start(&mut self, now: Nanos) {
        // A clock before 1970 counts as 1970.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        self.partition.on_clock(since_1970.unwrap_or_default(), now);
    }

    pub(crate) fn on_time(&mut self, now: Nanos) {
        self.partition.on_time(now);
    }

    pub(crate) fn time(&self, now: Nanos) -> Seconds {
        self.partition.time(now)
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            number: self.partition.number(),
            of: self.partition.map().partitions(),
        }
    }

    pub(crate) fn lanes(&self) -> Lanes {
        Lanes::new(self.standing(), self.partition.map().endpoints())
    }

    pub(crate) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Runs errands of other threads' clients.
    fn on_errands(&mut self, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
        for item in batch.iter_mut() {
            self.run_burst(item, cx);
        }
    }

    /// Runs a burst of errands as far as possible without interruption.
    fn run_burst(&mut self, mut item: BatchItem<'_>, cx: &mut Cx<'_>) {
        let (now, ticket) = (self.time(cx.now()), item.ticket(cx));
        let begun = self.bursts.iter().position(|(of, _)| *of == ticket);
        let mut run = match begun {
            Some(at) => self.bursts.swap_remove(at).1,
            None => BurstRun::new(std::mem::take(&mut self.answers)),
        };
        loop {
            let mut table = self.ledger.open(self.partition.lend());
            match table.run_errands(item.data(), &mut run, now) {
                Ok(true) => {
                    answer(item, run.answers(), cx);
                    break;
                }
                Ok(false) => match item.again() {
                    Ok(()) => return self.bursts.push((ticket, run)),
                    // It came in one packet, or too many requests wait already. So it runs to its
                    // end now.
                    Err(back) => item = back,
                },
                Err(_) => {
                    item.refuse(cx, ErrorCode::UNDECODABLE);
                    break;
                }
            }
        }
        self.answers = run.into_memory();
        self.answers.clear();
        self.answers.shrink_to(KEPT);
    }

    pub(crate) fn serve<'a>(&'a mut self, hall: &'a Hall) -> Serving<'a> {
        Serving { desk: self, hall }
    }
}

impl Host for Desk {
    fn partition(&mut self) -> &mut Partition {
        &mut self.partition
    }
}

/// A desk during a client's turn.
pub(crate) struct Serving<'a> {
    desk: &'a mut Desk,
    hall: &'a Hall,
}

impl Server for Serving<'_> {
    fn partition(&mut self) -> dunlin_memcached::Partition<'_> {
        self.desk.ledger.open(self.desk.partition.lend())
    }

    fn standing(&self) -> Standing {
        self.desk.standing()
    }

    fn owner(&self, key: &[u8]) -> u16 {
        let map = self.desk.partition.map();
        match map.partitions() {
            1 => 0,
            _ => map.place(key).partition,
        }
    }

    fn process(&self) -> Process {
        self.hall.process()
    }

    fn on_reset(&mut self) {
        self.hall.on_reset();
    }

    fn on_authentication(&mut self, is_known: bool) {
        self.hall.on_authentication(is_known);
    }

    fn refuses_flush(&self) -> bool {
        self.hall.refuses_flush()
    }

    fn most_value(&self) -> usize {
        self.hall.most_value()
    }
}

fn answer(item: BatchItem<'_>, bytes: &[u8], cx: &mut Cx<'_>) {
    if bytes.len() <= INLINE {
        // The batch has room for the answer.
        let _ = item.reply(bytes.len(), |out| out.copy_from_slice(bytes));
    } else {
        item.defer(cx).reply_bytes(cx, bytes);
    }
}

/// Registers two services on an endpoint: one for native clients, and one for errands from the
/// memcached clients of other threads.
pub fn serve<T: Open>(rpc: &mut Rpc<T, Desk>) {
    dunlin_kv::serve(rpc);
    rpc.on_batch_up_to(ERRANDS, INLINE, Desk::on_errands);
    rpc.on_session(|desk, event, _| desk.news.push_back(News::Session(event)));
    rpc.on_completion(|desk, done, _| desk.news.push_back(News::Done(done)));
}
