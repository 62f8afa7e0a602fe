//! Servers that restart under load, as processes of their own: every second one gets SIGTERM and
//! drains, the others are killed. A drain costs no call; a kill costs calls that may have run, and
//! no call runs twice. The test has a hundred restarts, half of them over each transport; the
//! variable `DUNLIN_RESTARTS` sets the number over each.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin::service::{Context, Postcard};
use dunlin::{Caller, Channel, Ran, service};
use dunlin_testkit::address::free_port;
use dunlin_testkit::child::Child;

use crate::server::drain::is_ready;
use crate::server::{WAYS, Way, until};

const ROUNDS: &str = "DUNLIN_RESTARTS";

const SERVERS: usize = 3;

/// Calls in flight at once.
const TASKS: usize = 40;

/// The longest handler, in milliseconds.
const LONGEST: u64 = 5;

#[service(codec = Postcard)]
trait Recorded {
    /// Notes the job, takes some milliseconds, and returns the job.
    #[method(1)]
    fn run(job: (u64, u64)) -> u64;
}

/// Appends each job that runs to a file, which outlives the process.
struct Recorder {
    cx: Caller,
    file: File,
}

impl Recorded for Recorder {
    async fn run(&self, (job, ms): (u64, u64), _: Context<'_>) -> u64 {
        // The kernel appends eight bytes in one piece, so the jobs of two processes never mix.
        (&self.file).write_all(&job.to_le_bytes()).unwrap();
        self.cx.sleep(Duration::from_millis(ms)).await;
        job
    }
}

fn role(way: Way, address: &str, file: &Path) -> String {
    format!("Recorded {way:?} {address} {}", file.display())
}

/// Serves until a signal arrives.
pub(crate) fn serve(words: &[&str]) {
    let &[way, address, file] = words else {
        panic!("{words:?} is not a role");
    };
    let way = match way {
        "Shm" => Way::Shm,
        _ => Way::Udp,
    };
    let file = OpenOptions::new().append(true).open(file).unwrap();
    let server = way.server().service(move |thread| {
        RecordedServer(Recorder {
            cx: thread.caller(),
            file: file.try_clone().unwrap(),
        })
    });
    let drained = server.serve(address).unwrap();
    assert_eq!(drained.cut_off, 0);
}

/// Tasks that call without a pause.
struct Load {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicU64>,
    /// Calls that ended with an error, because they may have run.
    unknown: Arc<AtomicU64>,
    /// Whether each job was answered.
    thread: JoinHandle<Vec<bool>>,
}

impl Load {
    fn start(channel: Channel) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let [ended, unknown] = [(); 2].map(|()| Arc::<AtomicU64>::default());
        let (stopped, counts) = (Arc::clone(&stop), [&ended, &unknown].map(Arc::clone));
        let thread = std::thread::spawn(move || {
            let [ended, unknown] = counts;
            let client = RecordedClient::over(channel);
            let answered = RefCell::new(Vec::new());
            let task = || async {
                while !stopped.load(Ordering::Relaxed) {
                    let job = answered.borrow().len() as u64;
                    answered.borrow_mut().push(false);
                    match client.run(&(job, job % (LONGEST + 1))).await {
                        Ok(value) => {
                            assert_eq!(value, job);
                            answered.borrow_mut()[usize::try_from(job).unwrap()] = true;
                        }
                        Err(error) => {
                            assert_eq!(error.ran(), Ran::Unknown, "{job}: {error}");
                            unknown.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let tasks = futures::future::join_all((0..TASKS).map(|_| task()));
            runtime.unwrap().block_on(tasks);
            answered.into_inner()
        });
        Self {
            stop,
            ended,
            unknown,
            thread,
        }
    }

    fn wait_for_more(&self, calls: u64) {
        let before = self.ended.load(Ordering::Relaxed);
        until(|| self.ended.load(Ordering::Relaxed) >= before + calls);
    }

    fn unknown(&self) -> u64 {
        self.unknown.load(Ordering::Relaxed)
    }

    fn end(self) -> Vec<bool> {
        self.stop.store(true, Ordering::Relaxed);
        until(|| self.thread.is_finished());
        self.thread.join().unwrap()
    }
}

/// A file for the jobs that run; removed when dropped.
struct Record(PathBuf);

impl Record {
    fn new(way: Way) -> Self {
        let name = format!("dunlin-restarts-{}-{way:?}", std::process::id());
        let path = std::env::temp_dir().join(name);
        File::create(&path).unwrap();
        Self(path)
    }

    /// How often each of the first `jobs` jobs ran.
    fn runs(&self, jobs: usize) -> Vec<u32> {
        let mut runs = vec![0; jobs];
        let bytes = std::fs::read(&self.0).unwrap();
        for job in bytes.as_chunks::<8>().0 {
            runs[usize::try_from(u64::from_le_bytes(*job)).unwrap()] += 1;
        }
        runs
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn drill(way: Way) {
    let rounds = std::env::var(ROUNDS).map_or(50, |rounds| rounds.parse().unwrap());
    let record = Record::new(way);
    let addresses = [(); SERVERS].map(|()| free_port());
    let start = |address: &String| Child::start(&role(way, address, &record.0));
    let mut servers = addresses.each_ref().map(start);
    let channel = addresses.iter().fold(way.channel(), |channel, address| {
        channel.address(address.as_str())
    });
    let channel = channel.open().unwrap();
    let load = Load::start(channel.clone());
    for round in 0..rounds {
        let at = round % SERVERS;
        until(|| addresses.iter().all(|address| is_ready(&channel, address)));
        load.wait_for_more(200);
        let unknown = load.unknown();
        if round % 2 == 0 {
            servers[at].signal("TERM");
            assert!(servers[at].wait().success(), "round {round}");
            assert_eq!(load.unknown(), unknown, "a drain costs no call");
        } else {
            servers[at].kill();
            until(|| !is_ready(&channel, &addresses[at]));
        }
        servers[at] = start(&addresses[at]);
    }
    let unknown = load.unknown();
    let answered = load.end();
    let runs = record.runs(answered.len());
    println!(
        "{way:?}: {rounds} restarts, {} calls, {unknown} may have run",
        answered.len()
    );
    for (job, (answered, runs)) in answered.into_iter().zip(runs).enumerate() {
        let most = if answered { 1..=1 } else { 0..=1 };
        assert!(
            most.contains(&runs),
            "job {job} ran {runs} times: {answered}"
        );
    }
}

#[test]
fn no_call_is_lost_or_runs_twice_while_servers_restart() {
    for way in WAYS {
        drill(way);
    }
}
