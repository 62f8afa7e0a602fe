//! A client, and replicas that answer by a script.

use dunlin_core::transport::PeerId;
use dunlin_core::{Cx, Nanos, Refuse, Register, Request as RpcRequest, Session, SessionOptions};
use dunlin_replica::{
    Answer, Change, Client, ClientOptions, Error, OPERATE, Operation, Request, Token,
};
use dunlin_sim::world::{Act, ProcessId};
use dunlin_sim::{
    Cluster, Net, NetHandle, Node, PortId, SimEndpoint, SimTransport, World, take_reports,
};
use dunlin_wire::ErrorCode;

use crate::processes::options;

/// The answer to the operation of this number, from 1 on; requests for names do not count.
type Script = fn(u64) -> Result<Answer, ErrorCode>;

const CLIENT: PortId = PortId(2);
const PATIENCE: Nanos = Nanos::from_millis(500);

struct Fake {
    script: Script,
    asked: u64,
    opened: u64,
}

enum Actor {
    Client(Box<SimEndpoint<Client>>),
    Fake(Box<SimEndpoint<Fake>>),
}

struct Actors([Script; 2]);

impl Cluster for Actors {
    type Node = Actor;

    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Actor {
        let port = process.port;
        if port == CLIENT {
            let addresses = ["0", "1"].map(str::to_owned);
            let client = Client::new(addresses, ClientOptions::DEFAULT);
            let mut rpc = SimTransport::endpoint(net, port, client, options(), 7);
            rpc.on_completion(|client, done, cx| {
                assert!(client.on_done(done, cx).is_none(), "it makes all calls");
            });
            rpc.on_session(|client, event, cx| client.on_session(event, cx));
            return Actor::Client(Box::new(rpc));
        }
        let fake = Fake {
            script: self.0[port.0],
            asked: 0,
            opened: 0,
        };
        let mut rpc = SimTransport::endpoint(net, port, fake, options(), 8);
        rpc.register(OPERATE, on_operate);
        Actor::Fake(Box::new(rpc))
    }

    fn on_end(&mut self, _process: ProcessId) {}
}

fn on_operate(fake: &mut Fake, incoming: RpcRequest<'_>, cx: &mut Cx<'_>) {
    let request = Request::decode(incoming.data()).unwrap();
    let answer = match request.operation {
        Operation::Open => {
            fake.opened += 1;
            Ok(Answer::Opened(fake.opened))
        }
        _ => {
            fake.asked += 1;
            (fake.script)(fake.asked)
        }
    };
    match answer {
        Ok(answer) => {
            let mut bytes = vec![0; answer.size()];
            answer.encode(&mut bytes);
            incoming.reply_bytes(cx, &bytes);
        }
        Err(code) => incoming.refuse(cx, code),
    }
}

impl Node for Actor {
    fn run_once(&mut self) {
        match self {
            Self::Client(rpc) => {
                rpc.run_once();
                take_reports(rpc);
                let (client, mut cx) = rpc.with();
                client.on_time(&mut cx);
            }
            Self::Fake(rpc) => {
                rpc.run_once();
                take_reports(rpc);
            }
        }
    }

    fn next_wakeup(&mut self) -> Nanos {
        match self {
            Self::Client(rpc) => rpc.next_wakeup().min(rpc.app().next_wakeup()),
            Self::Fake(rpc) => rpc.next_wakeup(),
        }
    }
}

struct Stage(World<Actors>);

impl Stage {
    /// Replicas with these scripts; the first `count` of them run.
    fn new(scripts: [Script; 2], count: usize) -> Self {
        let net = Net::sound(1);
        let mut world = World::new(&net, Actors(scripts), 2);
        let ports: Vec<PortId> = (0..3)
            .map(|_| {
                let host = world.add_host();
                world.add_port(host)
            })
            .collect();
        for port in ports.into_iter().filter(|it| *it == CLIENT || it.0 < count) {
            world.act(Act::Boot(port));
        }
        Self(world)
    }

    fn client(&mut self) -> &mut SimEndpoint<Client> {
        match self.0.node(CLIENT) {
            Some(Actor::Client(rpc)) => rpc,
            _ => unreachable!("the client runs"),
        }
    }

    fn fake(&mut self, port: PortId) -> Option<&mut SimEndpoint<Fake>> {
        match self.0.node(port)? {
            Actor::Fake(rpc) => Some(rpc),
            Actor::Client(_) => None,
        }
    }

    /// Runs a change to its end, or a get if there is no change. Returns the result, and the
    /// client's number of calls until then.
    fn run(&mut self, change: Option<Change>) -> (Result<Answer, Error>, u64) {
        // Both sessions are made first.
        self.turn(Nanos::from_millis(10));
        let (client, mut cx) = self.client().with();
        let deadline = Some(cx.now() + PATIENCE);
        let begun = match change {
            Some(change) => client.begin_change(b"key", change, Token(1), deadline, &mut cx),
            None => client.begin_get(b"key", Token(1), deadline, &mut cx),
        };
        begun.unwrap();
        let end = self.0.now() + PATIENCE.times(2);
        while self.0.now() < end {
            self.turn(Nanos::from_micros(100));
            if let Some(end) = self.client().app_mut().next_end() {
                return (end.result, self.client().app().calls());
            }
        }
        panic!("the operation has not ended");
    }

    fn turn(&mut self, time: Nanos) {
        let now = self.0.now();
        while let Some(address) = self.client().app_mut().wish(now) {
            match self.connect(PortId(address.parse().unwrap())) {
                Some(session) => self.client().app_mut().on_connecting(&address, session),
                None => self.client().app_mut().on_refused(&address, now),
            }
        }
        self.0.poke(CLIENT);
        self.0.run_until(now + time);
    }

    fn connect(&mut self, far: PortId) -> Option<Session> {
        let peer = |port: PortId| PeerId(u32::try_from(port.0).unwrap());
        self.fake(far)?;
        let mut lifecycle = self.client().lifecycle();
        let session = lifecycle.open(&SessionOptions::default()).ok()?;
        let offer = lifecycle.offer_of(session)?;
        let accepted = self.fake(far)?.lifecycle().accept(peer(CLIENT), &offer);
        let (_, answer) = accepted.ok()?;
        let opened = self
            .client()
            .lifecycle()
            .opened(session, peer(far), &answer);
        opened.ok().map(|_| session)
    }
}

fn put() -> Option<Change> {
    Some(Change::Put(b"value".to_vec()))
}

#[test]
fn a_client_pauses_while_replicas_name_a_leader_that_it_cannot_reach() {
    let to_dead: Script = |_| Ok(Answer::Moved(b"1".to_vec()));
    let (result, calls) = Stage::new([to_dead; 2], 1).run(None);
    assert_eq!(result, Err(Error::Unavailable));
    assert!((50..150).contains(&calls), "{calls} calls");
}

#[test]
fn a_client_pauses_while_two_replicas_name_each_other() {
    let to_second: Script = |_| Ok(Answer::Moved(b"1".to_vec()));
    let to_first: Script = |_| Ok(Answer::Moved(b"0".to_vec()));
    let (result, calls) = Stage::new([to_second, to_first], 2).run(None);
    assert_eq!(result, Err(Error::Unavailable));
    assert!((100..300).contains(&calls), "{calls} calls");
}

#[test]
fn a_replica_that_cannot_read_a_request_is_passed_over() {
    let old: Script = |_| Err(ErrorCode::UNDECODABLE);
    let sound: Script = |_| Ok(Answer::Missing);
    let (result, _) = Stage::new([old, sound], 2).run(None);
    assert_eq!(result, Ok(Answer::Missing));
    for change in [None, put()] {
        let (result, _) = Stage::new([old, old], 2).run(change);
        assert_eq!(result, Err(Error::Incompatible));
    }
}

#[test]
fn a_change_that_a_replica_may_have_taken_ends_as_unknown() {
    let takes_one: Script = |number| match number {
        1 => Ok(Answer::Moved(Vec::new())),
        _ => Err(ErrorCode::UNDECODABLE),
    };
    let odd: Script = |_| Ok(Answer::Missing);
    for script in [takes_one, odd] {
        let (result, _) = Stage::new([script; 2], 2).run(put());
        assert_eq!(result, Err(Error::Unknown));
    }
}

#[test]
fn a_client_with_the_name_of_another_takes_a_new_one() {
    let script: Script = |number| match number {
        1 => Ok(Answer::Misnamed),
        _ => Ok(Answer::Written(9)),
    };
    let mut stage = Stage::new([script; 2], 2);
    assert_eq!(stage.run(put()).0, Ok(Answer::Written(9)));
    assert_eq!(stage.fake(PortId(0)).unwrap().app().opened, 2);
}
