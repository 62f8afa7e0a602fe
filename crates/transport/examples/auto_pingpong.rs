//! Measures the cost that `auto` adds to `shm`: the round trip of a 56-byte packet between two
//! threads over `shm`, over `auto` where all peers share memory, and over `auto` with one more peer
//! over UDP, which makes the endpoint poll its socket now and then.
//!
//! `cargo run --release -p dunlin-transport --example auto_pingpong [ROUNDS]`. Each round measures
//! everything once; figures are medians over the rounds.

use std::thread;
use std::time::Instant;

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::BufRef;
use dunlin_transport::auto::{self, Auto};
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo, meet};
use dunlin_transport::shm::{self, Shm};

/// Round trips per reading of the clock, which costs a tenth of a round trip.
const GROUP: u32 = 64;
const GROUPS: u32 = 2000;

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(15_usize);
    let mut rows: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        rows[0].push(ping_pong::<Shm>(pair::<Shm>(open_shm, true)));
        rows[1].push(ping_pong::<Auto>(pair::<Auto>(open_auto, true)));
        let (mut client, mut server) = pair::<Auto>(open_auto, true);
        let mut others = [open_auto(), open_auto()];
        connect::<Auto>(&mut client.0, &mut others[0], 3, false);
        connect::<Auto>(&mut server.0, &mut others[1], 4, false);
        rows[2].push(ping_pong::<Auto>((client, server)));
    }
    let [shm, auto, looking] = rows.map(|mut row| {
        row.sort_by(f64::total_cmp);
        row[row.len() / 2]
    });
    println!("round trip over shm                       {shm:>6.0} ns");
    println!(
        "over auto, all peers share memory         {auto:>6.0} ns, {:.3}",
        auto / shm
    );
    println!(
        "over auto, looking at the socket as well  {looking:>6.0} ns, {:.3}",
        looking / shm
    );
}

type Endpoint<T> = Halves<
    <T as dunlin_core::transport::Transport>::Rx,
    <T as dunlin_core::transport::Transport>::Tx,
>;

fn open_shm() -> Endpoint<Shm> {
    Shm::open(shm::Options::default()).expect("shared memory")
}

fn open_auto() -> Endpoint<Auto> {
    Auto::open(&auto::Options::default()).expect("shared memory and a port")
}

type Known<T> = (Endpoint<T>, PeerId);

fn pair<T: Connect>(open: impl Fn() -> Endpoint<T>, same_host: bool) -> (Known<T>, Known<T>) {
    let (mut client, mut server) = (open(), open());
    let (to_server, to_client) = connect::<T>(&mut client, &mut server, 2, same_host);
    ((client, to_server), (server, to_client))
}

fn connect<T: Connect>(
    a: &mut Endpoint<T>,
    b: &mut Endpoint<T>,
    uid: u8,
    same_host: bool,
) -> (PeerId, PeerId) {
    let info = |uid| PeerInfo {
        endpoint: EndpointUid([uid; 16]),
        same_host,
        same_process: same_host,
        proves: true,
        local: None,
        remote: Some(std::net::Ipv4Addr::LOCALHOST.into()),
    };
    let met = meet::<T>([a, b], &[info(1), info(uid)]);
    met.expect("the ends fit each other").into()
}

fn item(peer: PeerId, number: u32) -> TxItem {
    let mut inline = [0; MAX_INLINE];
    inline[..4].copy_from_slice(&number.to_le_bytes());
    TxItem {
        peer,
        inline_len: 56,
        inline,
        data: BufRef::EMPTY,
    }
}

fn receive<T: Connect>(endpoint: &mut Endpoint<T>) -> u32 {
    while endpoint.rx.burst() == 0 {
        std::hint::spin_loop();
    }
    let bytes = endpoint
        .rx
        .frame(0)
        .bytes
        .first_chunk()
        .expect("packets have 56 bytes");
    u32::from_le_bytes(*bytes)
}

/// Median round trip in nanoseconds.
fn ping_pong<T: Connect>((client, server): (Known<T>, Known<T>)) -> f64
where
    T::Rx: Send + 'static,
    T::Tx: Send + 'static,
{
    let ((mut client, to_server), (mut server, to_client)) = (client, server);
    let echo = thread::spawn(move || {
        loop {
            let number = receive::<T>(&mut server);
            if number == u32::MAX {
                return;
            }
            server.tx.burst(&[item(to_client, number)]);
        }
    });
    let mut spans: Vec<f64> = (0..GROUPS)
        .map(|_| {
            let start = Instant::now();
            for number in 0..GROUP {
                client.tx.burst(&[item(to_server, number)]);
                assert_eq!(receive::<T>(&mut client), number);
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(GROUP)
        })
        .collect();
    client.tx.burst(&[item(to_server, u32::MAX)]);
    echo.join().expect("the server does not panic");
    spans.sort_by(f64::total_cmp);
    spans[spans.len() / 2]
}
