//! A replica over an endpoint of a nexus, and a client that asks replicas about their state.

use std::io::{Write, stderr};
use std::{fmt, thread};

use dunlin_core::{CallOptions, Done, Nanos, RpcError, Tag};
use dunlin_nexus::{ConnectError, ConnectOptions, EndpointBuilder, EndpointError, Open, Rpc};
use dunlin_wire::{ErrorCode, ReqType};

use crate::replica::Replica;
use crate::service::serve;
use crate::wire::{
    BOOTSTRAP, JOIN, Members, ORDER, OTHER_ITEMS, Order, Role, Roster, STATUS, STRANGER, Status,
    TAKEN, UNABLE, UNSAVED, VERSION,
};

/// Bytes of an answer: enough for a status with sixteen members that have long addresses.
const ROOM: usize = 8192;

/// The exit code of a process that a panic of its replica has ended: the same as after any panic in
/// the first thread.
const PANICKED: i32 = 101;

/// A replica, and the endpoint that serves it.
pub struct Driver<T: Open> {
    rpc: Rpc<T, Replica>,
    connect: ConnectOptions,
    last_words: Box<dyn Fn() -> String>,
}

/// Ends the process if a panic drops it.
struct Guard<'a> {
    last_words: &'a dyn Fn() -> String,
    panics_already: bool,
}

impl<'a> Guard<'a> {
    fn new(last_words: &'a dyn Fn() -> String) -> Self {
        Self {
            last_words,
            panics_already: thread::panicking(),
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() && !self.panics_already {
            // `eprintln!` would panic if the standard error stream is closed.
            let _ = writeln!(stderr(), "dunlin: {}", (self.last_words)());
            std::process::exit(PANICKED);
        }
    }
}

impl<T: Open> Driver<T> {
    /// Makes the endpoint. The other replicas must have theirs at the same index of their nexus.
    ///
    /// # Errors
    /// The endpoint cannot be made.
    pub fn new(
        endpoint: EndpointBuilder<T>,
        replica: Replica,
        connect: ConnectOptions,
    ) -> Result<Self, EndpointError> {
        let mut rpc: Rpc<T, Replica> = endpoint.build(replica)?;
        serve(&mut rpc);
        rpc.on_completion(|replica, done, cx| {
            if let Some(other) = replica.on_done(done, cx) {
                cx.recycle([other.request, other.response]);
            }
        });
        rpc.on_session(|replica, event, cx| replica.on_session(event, cx));
        let waker = rpc.waker();
        rpc.app_mut().wake_with(waker);
        let last_words = || {
            "a replica ends its process because of the panic above: its disk, its log or its \
             promises are not as Raft needs them, so it must not go on"
                .to_owned()
        };
        Ok(Self {
            rpc,
            connect,
            last_words: Box::new(last_words),
        })
    }

    /// Takes the text that [`Self::turn`] prints before it ends the process after a panic.
    #[must_use]
    pub fn with_last_words(mut self, last_words: impl Fn() -> String + 'static) -> Self {
        self.last_words = Box::new(last_words);
        self
    }

    /// The replica.
    pub fn replica(&self) -> &Replica {
        self.rpc.app()
    }

    /// Runs one iteration of the endpoint, and the replica. If there is nothing to do, it blocks,
    /// but not beyond `limit`.
    ///
    /// If Raft finds that the log has lost something, or the disk has failed, the replica panics,
    /// and this function ends the process with the code 101, from any thread: it is then not known
    /// what the disk has kept, or what Raft has promised, so no caller may catch the panic.
    pub fn turn(&mut self, limit: Nanos) {
        let _guard = Guard::new(&*self.last_words);
        self.rpc.iterate(|replica| replica.next_wakeup().min(limit));
        let (replica, mut cx) = self.rpc.with();
        let has_run = replica.run(&mut cx);
        let now = cx.now();
        if has_run {
            self.rpc.send_queued();
        }
        while let Some(address) = self.rpc.app_mut().wish(now) {
            match self.rpc.connect_with(address.as_str(), &self.connect) {
                Ok(session) => self.rpc.app_mut().on_connecting(&address, session),
                Err(_) => self.rpc.app_mut().on_refused(&address, now),
            }
        }
    }

    /// Transfers the leadership, if this replica leads a cluster with other members, and runs until
    /// another replica leads or the time has passed. After a clean stop, clients then need not wait
    /// for an election timeout.
    pub fn hand_over(&mut self, patience: Nanos) {
        let end = self.now() + patience;
        let leads = |replica: &Replica| replica.status().role == Role::Leader;
        let is_alone = |it: Roster| it.iter().count() == 1;
        let members = self.replica().status().members;
        if members.is_none_or(is_alone) || !self.rpc.app_mut().on_order(Order::Transfer(0)) {
            return;
        }
        while leads(self.replica()) && self.now() < end {
            self.turn(end);
        }
    }

    /// The time of the endpoint's clock.
    pub fn now(&mut self) -> Nanos {
        self.rpc.now()
    }
}

/// Asks replicas by their addresses, one question at a time.
pub struct Inquirer<T: Open> {
    rpc: Rpc<T, Option<Done>>,
    connect: ConnectOptions,
}

/// A question has no answer.
#[derive(Debug)]
pub enum AskError {
    /// No session could be made.
    Connect(ConnectError),
    /// The replica does not answer.
    Call(RpcError),
    /// There is no memory for the messages, or the session has ended.
    NoCall,
    /// The replica already belongs to another cluster.
    Taken,
    /// The replica is not a member: its process has restarted with another number.
    Stranger,
    /// The replica's disk could not save the members.
    Unsaved,
    /// The replica does not lead, or cannot carry out the order for the member that it names.
    Unable,
    /// The replica has restored items, but not those with which the cluster begins.
    OtherItems,
    /// The answer does not follow this protocol.
    Incompatible,
}

impl<T: Open> Inquirer<T> {
    /// Makes the endpoint.
    ///
    /// # Errors
    /// The endpoint cannot be made.
    pub fn new(
        endpoint: EndpointBuilder<T>,
        connect: ConnectOptions,
    ) -> Result<Self, EndpointError> {
        let mut rpc: Rpc<T, Option<Done>> = endpoint.build(None)?;
        rpc.on_completion(|last, done, _| *last = Some(done));
        Ok(Self { rpc, connect })
    }

    /// Asks the replica at an address for its state.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn status(&mut self, address: &str) -> Result<Status, AskError> {
        self.ask(address, STATUS, &[VERSION])
    }

    /// Gives the replica at an address its seat in a cluster.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn bootstrap(&mut self, address: &str, members: &Members) -> Result<Status, AskError> {
        self.ask(address, BOOTSTRAP, &members.to_bytes())
    }

    /// Gives the replica at an address an order. The replica's status shows later whether it was
    /// carried out.
    ///
    /// # Errors
    /// [`AskError`].
    pub fn order(&mut self, address: &str, order: &Order) -> Result<Status, AskError> {
        self.ask(address, ORDER, &order.to_bytes())
    }

    /// Gives the replica at an address a seat in a running cluster, with a roster [for
    /// joining](Roster::for_joining).
    ///
    /// # Errors
    /// [`AskError`].
    pub fn join(&mut self, address: &str, roster: &Roster) -> Result<Status, AskError> {
        self.ask(address, JOIN, &roster.to_bytes())
    }

    fn ask(&mut self, address: &str, question: ReqType, bytes: &[u8]) -> Result<Status, AskError> {
        let connected = self.rpc.connect_with(address, &self.connect);
        let session = connected.map_err(AskError::Connect)?;
        let opened = self.rpc.wait_connected(session);
        opened.map_err(AskError::Connect)?;
        let request = self.rpc.cx().copy(bytes).map_err(|_| AskError::NoCall)?;
        let response = self.rpc.buf(ROOM).map_err(|_| AskError::NoCall)?;
        let options = CallOptions {
            deadline: Some(self.connect.patience.into()),
        };
        let call = self
            .rpc
            .call_with(session, question, request, response, Tag(0), options);
        call.map_err(|_| AskError::NoCall)?;
        self.rpc.run_until(|rpc| rpc.app().is_some());
        let done = self.rpc.app_mut().take().expect("the loop waited for it");
        let _ = self.rpc.disconnect(session);
        match done.result {
            Ok(()) => Status::decode(done.response.data()).map_err(|_| AskError::Incompatible),
            Err(RpcError::Rejected(TAKEN, _)) => Err(AskError::Taken),
            Err(RpcError::Rejected(STRANGER, _)) => Err(AskError::Stranger),
            Err(RpcError::Rejected(UNSAVED, _)) => Err(AskError::Unsaved),
            Err(RpcError::Rejected(UNABLE, _)) => Err(AskError::Unable),
            Err(RpcError::Rejected(OTHER_ITEMS, _)) => Err(AskError::OtherItems),
            Err(RpcError::Rejected(ErrorCode::UNDECODABLE | ErrorCode::UNKNOWN_TYPE, _)) => {
                Err(AskError::Incompatible)
            }
            Err(error) => Err(AskError::Call(error)),
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => error.fmt(f),
            Self::Call(error) => error.fmt(f),
            Self::NoCall => f.write_str("there is no memory, or the session has ended"),
            Self::Taken => f.write_str("it belongs to another cluster"),
            Self::Stranger => f.write_str("its process has restarted with another number"),
            Self::Unable => f.write_str("it does not lead, or that member is not in its cluster"),
            Self::Unsaved => f.write_str("its disk cannot save the members; is it full?"),
            Self::OtherItems => f.write_str(
                "it begins with other items than the cluster; restore the same backup on all \
                 replicas of a new cluster, and let one with an empty directory join an old one",
            ),
            Self::Incompatible => f.write_str("no replica of this version answers there"),
        }
    }
}

impl std::error::Error for AskError {}

#[cfg(test)]
mod tests;
