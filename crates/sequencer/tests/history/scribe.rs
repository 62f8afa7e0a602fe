//! The part of a server's process that calls the replicated store. The functions that do a job
//! (`perform`, `take_directory`) block their thread, so each job runs on a thread of its own. That
//! thread and the simulated process take turns: while one works, the other waits. So a seed always
//! has the same run.

use std::sync::mpsc::{Receiver, Sender, channel};

use dunlin_core::Nanos;
use dunlin_replica::{Answer, Change, Client, ClientOptions, Compare, Error, Found, Token, Write};
use dunlin_sequencer::{
    Claim, ClaimError, Job, Options, Outcome, Replicated, StoreCalls, Taking, perform,
    take_directory,
};
use dunlin_sim::{NetHandle, PortId, SimEndpoint, SimTransport, take_reports};

use crate::nodes::endpoint;

/// A job of a server.
pub(crate) enum Task {
    Claim(Taking, Options, u32),
    Job(Job),
}

/// The end of a job.
pub(crate) enum Finished {
    Claim(Result<Claim, ClaimError>),
    Job(Outcome),
}

/// A call to the store.
enum Question {
    Get(Vec<u8>),
    Range(Vec<u8>, Vec<u8>, u32),
    Change(Vec<u8>, Change),
}

/// Sent by the thread of a job when its turn ends.
enum Turn {
    Asks(Question),
    Ends(Replicated<Far>, Finished),
}

type Reply = Result<Answer, Error>;

/// The store, as a job's thread sees it. After a crash of the process, each call fails.
struct Far {
    turns: Sender<Turn>,
    answers: Receiver<Reply>,
}

/// The simulated part of the process.
pub(crate) struct Scribe {
    pub(crate) rpc: SimEndpoint<Client>,
    pub(crate) wishes: Vec<String>,
    /// The end of the last job, until the stage (`replicated.rs`) takes it.
    pub(crate) finished: Option<Finished>,
    /// `None` while a job is under way.
    files: Option<Replicated<Far>>,
    task: Option<Task>,
    turns: Receiver<Turn>,
    to_node: Sender<Turn>,
    answers: Sender<Reply>,
    tokens: u64,
    /// Calls of the job whose outcome is unknown.
    pub(crate) unknown: u64,
}

impl Far {
    fn ask(&mut self, question: Question) -> Reply {
        let gone = Err(Error::Unavailable);
        match self.turns.send(Turn::Asks(question)) {
            Ok(()) => self.answers.recv().unwrap_or(gone),
            Err(_) => gone,
        }
    }
}

impl StoreCalls for Far {
    fn get(&mut self, key: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Error> {
        match self.ask(Question::Get(key.to_vec()))? {
            Answer::Found(version, value) => Ok(Some((version, value))),
            Answer::Missing => Ok(None),
            other => panic!("{other:?}"),
        }
    }

    fn range(
        &mut self,
        prefix: &[u8],
        after: &[u8],
        limit: u32,
    ) -> Result<(Vec<Found>, bool), Error> {
        match self.ask(Question::Range(prefix.to_vec(), after.to_vec(), limit))? {
            Answer::Items { items, more } => Ok((items, more)),
            other => panic!("{other:?}"),
        }
    }

    fn compare_and_set(
        &mut self,
        key: &[u8],
        version: u64,
        value: &[u8],
    ) -> Result<Result<u64, u64>, Error> {
        let change = Change::CompareAndSet(version, value.to_vec());
        match self.ask(Question::Change(key.to_vec(), change))? {
            Answer::Written(version) => Ok(Ok(version)),
            Answer::Differs(version) => Ok(Err(version)),
            other => panic!("{other:?}"),
        }
    }

    fn transact(
        &mut self,
        compares: &[Compare<'_>],
        writes: &[Write<'_>],
    ) -> Result<Result<u64, u64>, Error> {
        let change = Change::transaction(compares, writes);
        match self.ask(Question::Change(Vec::new(), change))? {
            Answer::Written(version) => Ok(Ok(version)),
            Answer::Conflict(place) => Ok(Err(place)),
            other => panic!("{other:?}"),
        }
    }
}

impl Scribe {
    /// Makes this part of a new process, whose first job is `task`.
    pub(crate) fn boot(
        net: &NetHandle,
        port: PortId,
        replicas: impl Iterator<Item = usize>,
        task: Option<Task>,
        seed: u64,
    ) -> Self {
        let options = ClientOptions {
            deadline: Nanos::from_millis(120),
            attempt: Nanos::from_millis(40),
            ..ClientOptions::DEFAULT
        };
        let client = Client::new(replicas.map(|port| port.to_string()), options);
        let mut rpc = SimTransport::endpoint(net, port, client, endpoint(), seed);
        rpc.on_completion(|client, done, cx| {
            let other = client.on_done(done, cx);
            assert!(other.is_none(), "the client makes all calls");
        });
        rpc.on_session(|client, event, cx| client.on_session(event, cx));
        let (to_node, turns) = channel();
        let (answers, taken) = channel();
        let far = Far {
            turns: to_node.clone(),
            answers: taken,
        };
        let files = Replicated::start("numbers", move || Ok::<_, Error>(far)).unwrap();
        Self {
            rpc,
            wishes: Vec::new(),
            finished: None,
            files: Some(files),
            task,
            turns,
            to_node,
            answers,
            tokens: 0,
            unknown: 0,
        }
    }

    /// Takes a job, which begins when the process next runs.
    pub(crate) fn take(&mut self, job: Job) {
        let before = self.task.replace(Task::Job(job));
        assert!(before.is_none(), "one job at a time");
    }

    pub(crate) fn run_once(&mut self) {
        self.rpc.run_once();
        take_reports(&mut self.rpc);
        if let Some(task) = self.task.take() {
            self.start(task);
        }
        let (client, mut cx) = self.rpc.with();
        client.on_time(&mut cx);
        while let Some(address) = client.wish(cx.now()) {
            self.wishes.push(address);
        }
        while let Some(end) = self.rpc.app_mut().next_end() {
            assert_eq!(end.token.0, self.tokens, "one call at a time");
            self.unknown += u64::from(end.result == Err(Error::Unknown));
            self.answers.send(end.result).unwrap();
            self.wait_for_turn();
        }
    }

    pub(crate) fn next_wakeup(&mut self) -> Nanos {
        match self.task {
            Some(_) => Nanos::ZERO,
            None => self.rpc.next_wakeup().min(self.rpc.app().next_wakeup()),
        }
    }

    fn start(&mut self, task: Task) {
        let mut files = self.files.take().expect("one job at a time");
        let to_node = self.to_node.clone();
        std::thread::spawn(move || {
            let finished = match task {
                Task::Claim(taking, options, process) => {
                    Finished::Claim(take_directory(&mut files, taking, &options, process))
                }
                Task::Job(job) => Finished::Job(perform(&mut files, &job)),
            };
            // The process may have crashed.
            let _ = to_node.send(Turn::Ends(files, finished));
        });
        self.wait_for_turn();
    }

    /// Waits until the thread of the job asks for something, or ends.
    fn wait_for_turn(&mut self) {
        match self.turns.recv().unwrap() {
            Turn::Asks(question) => self.begin(question),
            Turn::Ends(files, finished) => {
                self.files = Some(files);
                self.finished = Some(finished);
            }
        }
    }

    fn begin(&mut self, question: Question) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let (client, mut cx) = self.rpc.with();
        let cx = &mut cx;
        let begun = match question {
            Question::Get(key) => client.begin_get(&key, token, None, cx),
            Question::Range(prefix, after, limit) => {
                client.begin_range((&prefix, &after), limit, token, None, cx)
            }
            Question::Change(key, change) => client.begin_change(&key, change, token, None, cx),
        };
        begun.unwrap();
    }
}
