//! Takes numbers of a sequencer between two endpoints over shared memory, in one thread and with a
//! clock that only counts, so that every run executes the same instructions. `cargo xtask budget`
//! runs it under callgrind.
//!
//! ```text
//! cargo run --release -p dunlin-sequencer --example take_rpc -- [KIND] [IN_FLIGHT] [COUNT]
//! ```
//!
//! Kind 1 takes numbers one by one, and kind 0 exchanges echoes whose requests and answers are as
//! long as those of kind 1. Both use a client that prepares its requests, as in
//! `dunlin bench sequencer`. Kind 2 takes numbers with the library's client. The last printed line
//! is the number of counted operations.

use dunlin_core::transport::PeerId;
use dunlin_core::{Cx, Done, Endpoint, Session, SessionOptions, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_sequencer::{
    Answer, Client as Numbers, ClientOptions, Desk, Files, Name, Options, TAKE, Take, Taking,
    Token, perform, serve, take_directory,
};
use dunlin_testkit::folder::Folder;
use dunlin_testkit::instructions::{Ticks, argument, count, endpoint};
use dunlin_testkit::session::connect;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{Options as ShmOptions, Shm};
use dunlin_wire::ReqType;

/// The server answers with the first 8 bytes of the request.
const ECHO: ReqType = ReqType(0x10);

/// Bytes of an answer: a number.
const ANSWER: usize = 8;

/// Operations that begin together.
const BATCH: usize = 16;

/// Operations before counting starts, which fill pools and rings.
const WARM_UP: u64 = 4000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Echo,
    Take,
    /// Takes numbers with the library's client.
    Next,
}

struct Client {
    kind: Kind,
    numbers: Numbers,
    /// Prepared requests, and room for their answers.
    ready: Vec<[MsgBuf; 2]>,
    session: Option<Session>,
    in_flight: usize,
    under_way: usize,
    completed: u64,
    /// The last number that was taken.
    last: u64,
}

type ClientRpc = Endpoint<Shm, Ticks, Client>;
type ServerRpc = Endpoint<Shm, Ticks, Desk>;

fn main() {
    let kind = match argument(0, 1) {
        0 => Kind::Echo,
        1 => Kind::Take,
        _ => Kind::Next,
    };
    let in_flight = usize::try_from(argument(1, 60)).expect("few");
    let folder = Folder::new("take-rpc");
    let mut files = Files::open(&folder.join("numbers")).expect("the folder can be made");
    let (mut client, mut server) = connected(kind, in_flight, &mut files);
    let done = count(WARM_UP, argument(2, 100_000), || {
        client_turn(&mut client);
        server_turn(&mut server);
        keep(&mut server, &mut files);
        client.app().completed
    });
    assert_eq!(client.counters().retransmissions, 0);
    println!("{done}");
}

/// The client's turn: takes the answers and begins the next operations.
#[inline(never)]
fn client_turn(client: &mut ClientRpc) {
    client.run_once();
    let (app, mut cx) = client.with();
    app.turn(&mut cx);
}

/// The server's turn: takes the requests and sends the answers.
#[inline(never)]
fn server_turn(server: &mut ServerRpc) {
    server.run_once();
}

/// The work of the disk's thread.
fn keep(server: &mut ServerRpc, files: &mut Files) {
    let (desk, mut cx) = server.with();
    if let Some(job) = desk.next_job(cx.now()) {
        desk.on_outcome(perform(files, &job), &mut cx);
    }
}

impl Client {
    fn turn(&mut self, cx: &mut Cx<'_>) {
        if self.kind == Kind::Next {
            self.numbers.on_time(cx);
            while let Some(end) = self.numbers.next_end() {
                let numbers = end.result.expect("the server gives numbers");
                self.on_number(numbers.start);
            }
        }
        let batch = BATCH.min(self.in_flight);
        while self.under_way + batch <= self.in_flight {
            for _ in 0..batch {
                self.begin(cx);
            }
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        self.under_way += 1;
        let req_type = match self.kind {
            Kind::Echo => ECHO,
            Kind::Take => TAKE,
            Kind::Next => {
                let begun = self.numbers.begin(1, Token(0), None, cx);
                return begun.expect("one number can be taken");
            }
        };
        let [request, response] = self.ready.pop().expect("as many are ready as begin");
        let session = self.session.expect("it was made before");
        let called = cx.call(session, req_type, request, response, Tag(0));
        called.expect("the session is open");
    }

    fn on_done(&mut self, done: Done, cx: &mut Cx<'_>) {
        let Some(done) = self.numbers.on_done(done, cx) else {
            return;
        };
        assert_eq!(done.result, Ok(()));
        match self.kind {
            Kind::Echo => {
                assert_eq!(done.response.data(), &done.request.data()[..ANSWER]);
                self.on_end();
            }
            _ => {
                let answer = Answer::decode(done.response.data());
                let number = answer.expect("it is an answer").first(0);
                self.on_number(number.expect("the server gives numbers"));
            }
        }
        self.ready.push([done.request, done.response]);
    }

    fn on_number(&mut self, number: u64) {
        assert!(number > self.last, "{number} after {}", self.last);
        self.last = number;
        self.on_end();
    }

    fn on_end(&mut self) {
        self.under_way -= 1;
        self.completed += 1;
    }
}

/// A server, and a client that has opened its sequence 0.
fn connected(kind: Kind, in_flight: usize, files: &mut Files) -> (ClientRpc, ServerRpc) {
    let [mut near, mut far] =
        [(); 2].map(|()| Shm::open(ShmOptions::default()).expect("shared memory"));
    let infos = [1, 2].map(|uid| PeerInfo::of_this_host(EndpointUid([uid; 16])));
    let met = meet::<Shm>([&mut near, &mut far], &infos);
    let peers: [PeerId; 2] = met.expect("the ends fit each other");
    let options = ClientOptions {
        create: true,
        ..ClientOptions::DEFAULT
    };
    let name = Name::from_bytes(b"counted");
    let app = Client {
        kind,
        numbers: Numbers::new(name.expect("it is short"), options),
        ready: Vec::new(),
        session: None,
        in_flight,
        under_way: 0,
        completed: 0,
        last: 0,
    };
    let options = Options::DEFAULT;
    let claim = take_directory(files, Taking::Free, &options, 1).expect("the folder is new");
    let mut client = endpoint(app, Ticks::default(), near, 1);
    let mut server = endpoint(Desk::new(claim, options), Ticks::default(), far, 2);
    serve(&mut server);
    server.on(ECHO, |_, request, cx| {
        let data = request.data();
        request.reply(cx, ANSWER, |out| out.copy_from_slice(&data[..ANSWER]));
    });
    client.on_completion(Client::on_done);
    client.on_session(|app, event, cx| app.numbers.on_session(event, cx));
    let options = SessionOptions::DEFAULT.with_window(64).with_credits(64);
    let wish = client.app_mut().numbers.wish(dunlin_core::Nanos::ZERO);
    assert_eq!(wish, Some(0), "a new client wants a session");
    let session = connect(&mut client, &mut server, peers, &options)[0];
    client.app_mut().numbers.on_connecting(session);
    client.app_mut().session = Some(session);
    open(&mut client, &mut server, files);
    prepare(&mut client, in_flight);
    (client, server)
}

/// Takes the first number with the library's client, which first opens the sequence.
fn open(client: &mut ClientRpc, server: &mut ServerRpc, files: &mut Files) {
    let (app, mut cx) = client.with();
    let begun = app.numbers.begin(1, Token(0), None, &mut cx);
    begun.expect("one number can be taken");
    for _ in 0..1000 {
        client.run_once();
        let (app, mut cx) = client.with();
        app.numbers.on_time(&mut cx);
        if let Some(end) = app.numbers.next_end() {
            let numbers = end.result.expect("the server gives numbers");
            app.last = numbers.start;
            return;
        }
        server.run_once();
        keep(server, files);
    }
    panic!("the sequence does not open");
}

/// Prepares the client's requests.
fn prepare(client: &mut ClientRpc, in_flight: usize) {
    let (app, mut cx) = client.with();
    let take = Take {
        sequence: 0,
        epoch: app.numbers.epoch(),
        count: 1,
        expected: None,
    };
    for _ in 0..in_flight {
        let request = cx.copy(&take.encode()).expect("there is memory");
        let response = cx.buf(ANSWER).expect("there is memory");
        app.ready.push([request, response]);
    }
}
