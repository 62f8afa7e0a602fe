//! The cost of publishing counters for an endpoint, and of its readers. The results are for people,
//! so the test is run by hand.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin::{ConnectOptions, InsightTcp, Nanos, Nexus, Rpc, Session, Shm, Tag};

use super::{ECHO, dunlin};

/// How long an endpoint runs each time, and how often each way is measured.
const SPAN: Duration = Duration::from_millis(100);
const RUNS: usize = 101;
/// Calls in flight.
const CALLS: u64 = 8;

/// Two endpoints of this thread, one of which calls the other as fast as it can.
struct Busy {
    nexus: Nexus,
    server: Rpc<Shm, ()>,
    client: Rpc<Shm, u64>,
    session: Session,
}

impl Busy {
    fn start(hidden: bool) -> Self {
        let builder = Nexus::builder().insight_tcp(InsightTcp::Counters);
        let nexus = builder.hidden(hidden).bind("127.0.0.1:0").unwrap();
        let mut server: Rpc<Shm, ()> = nexus.endpoint_builder().index(1).build(()).unwrap();
        server.on(ECHO, |(), request, cx| {
            let byte = request.data()[0];
            request.reply(cx, 32, |out| out.fill(byte));
        });
        let mut client: Rpc<Shm, u64> = nexus.endpoint(0).unwrap();
        client.on_completion(|completed, done, cx| {
            *completed += 1;
            let called = cx.call(done.session, ECHO, done.request, done.response, Tag(0));
            assert!(called.is_ok());
        });
        let options = ConnectOptions {
            endpoint: Some(1),
            ..ConnectOptions::default()
        };
        let session = client.connect_with(nexus.address(), &options).unwrap();
        for _ in 0..CALLS {
            let (request, response) = (client.buf(32).unwrap(), client.buf(32).unwrap());
            client
                .call(session, ECHO, request, response, Tag(0))
                .unwrap();
        }
        Self {
            nexus,
            server,
            client,
            session,
        }
    }

    /// Calls in a second of this thread's processor time, so that other programs do not count.
    fn rate(&mut self) -> f64 {
        assert!(self.client.session_info(self.session).is_ok());
        let (before, start, ran) = (*self.client.app(), Instant::now(), processor_time());
        while start.elapsed() < SPAN {
            for _ in 0..100 {
                self.client.iterate(|_| Nanos::ZERO);
                self.server.iterate(|_| Nanos::ZERO);
            }
        }
        let calls = *self.client.app() - before;
        calls as f64 / (processor_time() - ran)
    }
}

/// Seconds for which this thread has had a processor.
fn processor_time() -> f64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let ns: u64 = said.split(' ').next().unwrap().parse().unwrap();
    ns as f64 / 1e9
}

fn watcher(target: &str) -> Child {
    let mut watch = dunlin(&["stats", target, "--watch", "0.05"]);
    let watch = watch.stdout(Stdio::null()).spawn().unwrap();
    // By then the watcher reads, unless the machine is busy. On a busy machine it connects during
    // the first measurement, which does not affect the median.
    std::thread::sleep(Duration::from_millis(200));
    signal(&watch, "-STOP");
    watch
}

fn signal(process: &Child, name: &str) {
    let mut kill = Command::new("kill");
    kill.args([name, &process.id().to_string()]);
    assert!(kill.status().unwrap().success());
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// `cargo test --release -p dunlin-cli --test insight -- --ignored --nocapture looked_at`
#[test]
#[ignore = "it measures, and asserts nothing that noise could not break"]
fn the_cost_of_being_looked_at() {
    let (mut hidden, mut shown) = (Busy::start(true), Busy::start(false));
    let pid = std::process::id().to_string();
    let address = shown.nexus.address().to_string();
    let watchers = [watcher(&pid), watcher(&address)];
    let mut rates: [Vec<f64>; 4] = Default::default();
    // The first calls connect.
    hidden.rate();
    shown.rate();
    // The ways take turns, so that each runs on the machine in the same state.
    for _ in 0..RUNS {
        rates[0].push(hidden.rate());
        rates[1].push(shown.rate());
        for (watch, rates) in watchers.iter().zip(&mut rates[2..]) {
            signal(watch, "-CONT");
            rates.push(shown.rate());
            signal(watch, "-STOP");
        }
    }
    for mut watch in watchers {
        assert!(watch.try_wait().unwrap().is_none(), "it has watched");
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
    for ways in ["hidden", "shown", "watched by PID", "watched by HOST:PORT"]
        .iter()
        .zip(&rates)
    {
        let mut of_shown: Vec<f64> = ways.1.iter().zip(&rates[1]).map(|(a, b)| a / b).collect();
        of_shown.sort_by(f64::total_cmp);
        let [low, middle, high] = [1, 2, 3].map(|quarter| of_shown[RUNS * quarter / 4]);
        println!(
            "{:22} {:.3} M/s, {middle:.3} of shown (half of the runs {low:.3} to {high:.3})",
            ways.0,
            median(ways.1.clone()) / 1e6,
        );
    }
}
