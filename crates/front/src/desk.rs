//! The state of an endpoint whose partition also serves memcached's clients.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use dunlin_core::{Cx, Nanos, Refuse, Request};
use dunlin_kv::{Figures, Host, Partition};
use dunlin_memcached::{Ledger, Process, Server, Standing};
use dunlin_nexus::{Open, Rpc};
use dunlin_store::Seconds;
use dunlin_wire::ErrorCode;

use crate::hall::Hall;
use crate::lanes::{ERRANDS, Lanes, News};

/// Memory for answers that is kept from one burst of errands to the next.
const KEPT: usize = 1 << 17;

/// A partition with the figures of memcached's commands.
#[derive(Debug)]
pub struct Desk {
    partition: Partition,
    ledger: Ledger,
    /// Answers to errands are put together here.
    answers: Vec<u8>,
    /// News of the endpoint for the front.
    news: VecDeque<News>,
}

impl Desk {
    /// Makes the state of an endpoint.
    #[must_use]
    pub fn new(partition: Partition) -> Self {
        Self {
            partition,
            ledger: Ledger::default(),
            answers: Vec::new(),
            news: VecDeque::new(),
        }
    }

    /// The partition's figures at this moment.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.partition.figures()
    }

    /// The values of the figures that tools show, as [`Partition::published`] has them.
    #[must_use]
    pub fn published(&self) -> impl IntoIterator<Item = u64> + use<> {
        self.partition.published()
    }

    /// Sets the clock of the table: seconds since 1970. From then on it follows the endpoint's, so
    /// no change of the system's clock lets items expire.
    pub(crate) fn on_start(&mut self, now: Nanos) {
        // A clock before 1970 is as good as that of 1970.
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

    /// Runs errands of another thread's clients.
    fn on_errands(&mut self, request: Request<'_>, cx: &mut Cx<'_>) {
        let now = self.time(cx.now());
        let mut table = self.ledger.open(self.partition.lend());
        match table.run_errands(request.data(), now, &mut self.answers) {
            Ok(()) => request.reply_bytes(cx, &self.answers),
            Err(_) => request.refuse(cx, ErrorCode::UNDECODABLE),
        }
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

/// A desk during the turn of a client.
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

    fn on_authentication(&mut self, is_known: bool) {
        self.hall.on_authentication(is_known);
    }

    fn refuses_flush(&self) -> bool {
        self.hall.refuses_flush()
    }
}

/// Registers two services on an endpoint: one for native clients, and one for the errands that come
/// from the memcached clients of other threads.
pub fn serve<T: Open>(rpc: &mut Rpc<T, Desk>) {
    dunlin_kv::serve(rpc);
    rpc.on(ERRANDS, Desk::on_errands);
    rpc.on_session(|desk, event, _| desk.news.push_back(News::Session(event)));
    rpc.on_completion(|desk, done, _| desk.news.push_back(News::Done(done)));
}
