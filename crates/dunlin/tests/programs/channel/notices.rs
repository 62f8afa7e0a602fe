//! Notifications with options: metadata, the key whose server gets them, and the endpoint.

use std::sync::mpsc::{Receiver, Sender, channel as queue};

use dunlin::channel::{Pick, State};
use dunlin::service::{Context, Failure, MetaError, Postcard};
use dunlin::{
    Auto, Channel, ChannelError, Cx, Local, Nexus, ReqType, Running, Server, Tasks, service,
};

use crate::channel::{PATIENCE, WAYS, Way, block_on, until};

#[service(codec = Postcard)]
trait Log {
    #[notify(1)]
    fn note(number: u32);

    /// The numbers of server and thread.
    #[method(2)]
    fn place(nothing: ()) -> (u32, usize);
}

/// Server, thread, number, and metadata of a notification.
type Noted = (u32, usize, u32, Vec<(String, String)>);

struct Logs {
    server: u32,
    thread: usize,
    noted: Sender<Noted>,
}

impl LogPoll for Logs {
    fn note(&mut self, number: u32, _: &mut Cx<'_>, context: Context<'_>) {
        let pairs = context.metadata().iter();
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let noted = (self.server, self.thread, number, pairs.collect());
        self.noted.send(noted).unwrap();
    }

    fn place(&mut self, (): (), _: &mut Cx<'_>, _: Context<'_>) -> (u32, usize) {
        (self.server, self.thread)
    }
}

fn start(way: Way, server: u32, noted: &Sender<Noted>) -> Running {
    let noted = noted.clone();
    let builder = Server::builder().nexus(way.nexus()).threads(2);
    let make = move |thread: usize| Logs {
        server,
        thread,
        noted: noted.clone(),
    };
    let builder = builder.poll(make, LogPoll::register);
    builder.start("127.0.0.1:0").unwrap()
}

fn next(noted: &Receiver<Noted>) -> Noted {
    noted.recv_timeout(PATIENCE).unwrap()
}

fn tenant() -> Vec<(String, String)> {
    vec![("tenant".to_owned(), "a".to_owned())]
}

/// A channel that picks servers by keys, once all are ready.
fn by_key(way: Way, servers: &[Running]) -> Channel {
    let builder = way.channel(servers[0].address()).pick(Pick::Hash);
    let builder = servers[1..].iter().fold(builder, |builder, server| {
        builder.address(server.address().to_string())
    });
    let channel = builder.open().unwrap();
    until(|| {
        let addresses = channel.state().addresses;
        let ready = addresses.iter().filter(|it| it.state == State::Ready);
        ready.count() >= servers.len()
    });
    channel
}

#[test]
fn a_notification_goes_to_the_server_of_its_key_with_its_metadata() {
    for way in WAYS {
        let (noted, log) = queue();
        let servers = [0, 1, 2].map(|server| start(way, server, &noted));
        let channel = by_key(way, &servers);
        let direct = LogClient::over(channel.clone());
        let layered = LogClient::over(channel.through(channel.clone()));
        let mut owners = [0; 3];
        for key in 0..20_u32 {
            let (owner, _) = block_on(direct.place(&()).hash(&key)).unwrap();
            owners[owner as usize] += 1;
            let notice = direct.note_notice(&key).hash(&key);
            notice.meta("tenant", "a").unwrap().send().unwrap();
            let (server, _, number, pairs) = next(&log);
            assert_eq!((server, number, pairs), (owner, key, tenant()));
            layered.note_notice(&key).hash(&key).send().unwrap();
            let (server, _, number, pairs) = next(&log);
            assert_eq!((server, number, pairs), (owner, key, vec![]));
            let number = [u8::try_from(key).unwrap()];
            let call = channel.call(ReqType(1), &number).hash(&key);
            call.meta("tenant", "a").unwrap().notify().unwrap();
            let (server, _, number, pairs) = next(&log);
            assert_eq!((server, number, pairs), (owner, key, tenant()));
        }
        assert!(owners.iter().all(|keys| *keys > 0), "{owners:?}");
    }
}

#[test]
fn calls_and_notifications_go_to_the_endpoint_that_they_name() {
    let (noted, log) = queue();
    let server = start(Way::Shm, 0, &noted);
    let channel = Way::Shm.open(server.address());
    let direct = LogClient::over(channel.clone());
    let layered = LogClient::over(channel.through(channel.clone()));
    block_on(channel.ready()).unwrap();
    for round in 0..10 {
        let endpoint = round % 2;
        let (_, thread) = block_on(direct.place(&()).endpoint(endpoint)).unwrap();
        let (_, same) = block_on(layered.place(&()).endpoint(endpoint)).unwrap();
        assert_eq!((thread, same), (endpoint.into(), endpoint.into()));
        direct.note_notice(&1).endpoint(endpoint).send().unwrap();
        assert_eq!(next(&log).1, thread);
    }
    let nowhere = direct.note_notice(&1).endpoint(u16::MAX).send();
    let failed = |end| matches!(end, Err(Failure::Call(ChannelError::Endpoint)));
    assert!(failed(nowhere));
}

#[test]
fn a_notification_on_a_session_has_metadata() {
    let (noted, log) = queue();
    let server = start(Way::Shm, 0, &noted);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let session = local.connect(server.address()).unwrap();
    local.block_on(|cx| async move {
        let client = LogClient::new(cx, session);
        let notice = client.note_notice(&7).meta("tenant", "a").unwrap();
        let twice = client.note_notice(&7).meta("k", "").unwrap();
        assert_eq!(twice.meta("k", "").unwrap_err(), MetaError::Twice);
        notice.send().unwrap();
        // The answer comes after the notification has left.
        client.place(&()).await.unwrap();
    });
    assert_eq!(next(&log), (0, 0, 7, tenant()));
}
