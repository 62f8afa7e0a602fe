//! A client for futures: a sequence of one server, over a session that the program has made.

use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

use dunlin_core::{RpcError, Session};
use dunlin_local::{Caller, Reply};
use dunlin_wire::ReqType;

use crate::error::Error;
use crate::wire::{Answer, MAX_COUNT, Name, OPEN, Open, Opened, TAKE, Take, halves, numbers_from};

/// A sequence, for the futures of one thread. It repeats nothing: to continue after its server has
/// failed, a program opens the sequence again, over a session with the next server.
///
/// ```no_run
/// use std::time::Duration;
/// use dunlin_core::Session;
/// use dunlin_local::Caller;
/// use dunlin_sequencer::{Error, Sequence};
///
/// async fn number(caller: &Caller, session: Session) -> Result<u64, Error> {
///     let name = "orders".parse().expect("it is a name");
///     let orders = Sequence::open(caller, session, name, true, Duration::from_secs(5)).await?;
///     orders.take_one().await
/// }
/// ```
pub struct Sequence {
    caller: Caller,
    session: Session,
    deadline: Duration,
    opened: Opened,
    upper: Cell<u32>,
}

impl Sequence {
    /// Opens the sequence `name`. If it does not exist and `create` is set, creates it. Each call,
    /// now and later, may take as long as `deadline`.
    ///
    /// # Errors
    /// [`Error`]; [`Error::DeadlinePassed`] also if the session has ended or the server does not
    /// serve.
    pub async fn open(
        caller: &Caller,
        session: Session,
        name: Name,
        create: bool,
        deadline: Duration,
    ) -> Result<Self, Error> {
        let open = Open {
            known_epoch: 0,
            create,
            name: name.as_str().as_bytes(),
        };
        let reply = call(caller, session, OPEN, &open.encode(), deadline).await?;
        let opened = Opened::decode(reply.data()).map_err(|_| Error::Incompatible)?;
        let opened = opened.map_err(refused)?;
        Ok(Self {
            caller: caller.clone(),
            session,
            deadline,
            upper: Cell::new(halves(opened.next).0),
            opened,
        })
    }

    /// Takes one number.
    ///
    /// # Errors
    /// As for [`Self::take`].
    pub async fn take_one(&self) -> Result<u64, Error> {
        Ok(self.take(1).await?.start)
    }

    /// Takes `count` consecutive numbers.
    ///
    /// # Errors
    /// [`Error`]; [`Error::DeadlinePassed`] also if the session has ended or the server has been
    /// deposed. The server may have given numbers that did not arrive; they leave a gap.
    pub async fn take(&self, count: u32) -> Result<Range<u64>, Error> {
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(Error::BadCount);
        }
        let upper = self.upper.get();
        let take = Take {
            sequence: self.opened.sequence,
            epoch: self.opened.epoch,
            count,
            expected: Some(upper),
        };
        let bytes = take.encode();
        let reply = call(&self.caller, self.session, TAKE, &bytes, self.deadline).await?;
        let answer = Answer::decode(reply.data()).map_err(|_| Error::Incompatible)?;
        let first = answer.first(upper).map_err(refused)?;
        self.upper.set(halves(first).0);
        numbers_from(first, count).ok_or(Error::Incompatible)
    }
}

async fn call(
    caller: &Caller,
    session: Session,
    req_type: ReqType,
    bytes: &[u8],
    deadline: Duration,
) -> Result<Reply, Error> {
    let request = caller.copy(bytes).map_err(|_| Error::NoBuffer)?;
    let call = caller.call(session, req_type, request).room(Opened::SIZE);
    let ended = call.deadline(deadline).await;
    ended.map_err(|failed| match failed.error {
        dunlin_service::Error::Rpc(
            RpcError::Rejected(..) | RpcError::TooLarge { .. } | RpcError::ResponseTooLarge { .. },
        ) => Error::Incompatible,
        _ => Error::DeadlinePassed,
    })
}

fn refused(status: crate::wire::Status) -> Error {
    Error::of_status(status).unwrap_or(Error::DeadlinePassed)
}
