//! Random clients that send, stop, wait for other threads and vanish. At each step, one client at
//! most has the floor, the memory is bounded, and no client passes another one in the line; and if
//! all clients go on, all commands arrive.

use dunlin_store::Seconds;
use dunlin_testkit::random::Random;

use super::super::{FREE, Load, Share, Stand};
use super::share;
use crate::hall::{Hall, Options};

const CLIENTS: usize = 6;

/// The longest command, and the most bytes that a client sends in a turn.
const LEN: usize = 100_000;
const PIECE: usize = 16_384;

/// The memory for incomplete commands: less than two long ones.
const LIMIT: usize = 150_000;

struct Client {
    share: Share,
    used: u64,
    /// Bytes of the present command that have arrived, and those that have not.
    arrived: usize,
    left: usize,
    /// Bytes of a command that another thread runs.
    waiting: usize,
}

struct Clients {
    hall: Hall,
    all: Vec<Client>,
    now: Seconds,
    random: Random,
}

impl Client {
    fn new(number: usize) -> Self {
        Self {
            share: share(number),
            used: 0,
            arrived: 0,
            left: 0,
            waiting: 0,
        }
    }

    fn load(&self) -> Load {
        Load {
            used: self.used,
            pending: self.arrived + self.waiting,
            waiting: self.waiting,
        }
    }

    fn has_floor(&self) -> bool {
        matches!(self.share.stand, Stand::Speaks { .. } | Stand::Ends { .. })
    }
}

impl Clients {
    fn new(seed: u64) -> Self {
        Self {
            hall: Hall::new(Options {
                incomplete: LIMIT as u64,
                patience: 10,
                threads: 2,
                ..Options::default()
            }),
            all: (0..CLIENTS).map(Client::new).collect(),
            now: super::NOW,
            random: Random::new(seed),
        }
    }

    /// A turn of a client, which sends at most `most` bytes.
    fn turn(&mut self, number: usize, most: usize) {
        let waits: Vec<_> = (self.all.iter().enumerate())
            .filter_map(|(other, client)| match client.share.stand {
                Stand::Waits(ticket) => Some((ticket, other)),
                _ => None,
            })
            .collect();
        let (hall, now) = (&self.hall, self.now);
        let client = &mut self.all[number];
        // A connection runs no further command while another thread runs one of 1 MiB.
        let wanted = if client.waiting > 0 {
            0
        } else {
            client.left.min(most)
        };
        let had_floor = client.has_floor();
        let room = client.share.on_turn(hall, wanted, client.load(), now);
        if !had_floor && client.has_floor() {
            let first = waits.iter().min().map_or(number, |(_, first)| *first);
            assert_eq!(number, first, "no client passes another one");
        }
        let sent = wanted.min(room.unwrap_or(0));
        if sent > 0 {
            client.share.on_bytes(sent, now);
            client.arrived += sent;
            client.left -= sent;
        }
        if client.left == 0 && client.arrived > 0 {
            client.used += client.arrived as u64;
            if self.random.one_in(2) {
                client.waiting = client.arrived;
            }
            client.arrived = 0;
        }
        client
            .share
            .on_turn_end(hall, client.load(), room.is_none());
    }

    /// Another thread has run the command of a client.
    fn answer(&mut self, number: usize) {
        self.all[number].waiting = 0;
        self.turn(number, 0);
    }

    fn close(&mut self, number: usize) {
        let client = &mut self.all[number];
        client.share.on_close(&self.hall);
        self.all[number] = Client::new(number);
    }

    fn step(&mut self) {
        let number = self.random.below(CLIENTS);
        match self.random.below(20) {
            0..=11 => {
                let client = &mut self.all[number];
                if client.left + client.arrived + client.waiting == 0 {
                    let longest = self.random.pick(&[FREE / 2, LEN]);
                    client.left = 1 + self.random.below(longest);
                }
                let most = 1 + self.random.below(PIECE);
                self.turn(number, most);
            }
            12..=14 => self.answer(number),
            15 => self.all[number].share.on_work(self.now),
            16 => self.close(number),
            17 => self.now = Seconds(self.now.0 + 1),
            _ => {
                let is_waiting = self.random.one_in(2);
                let client = &self.all[number];
                if client
                    .share
                    .is_late(self.hall.floor(), is_waiting, self.now)
                {
                    assert!(!self.hall.floor().has_room());
                    self.close(number);
                }
            }
        }
        self.check();
    }

    fn check(&self) {
        let speakers = self.all.iter().filter(|client| client.has_floor()).count();
        assert!(speakers <= 1, "{speakers} clients have the floor");
        let bytes: usize = self.all.iter().map(|client| client.share.counted).sum();
        assert_eq!(self.hall.floor().has_room(), bytes < LIMIT);
        let most = LIMIT + PIECE + LEN;
        assert!(bytes <= most, "{bytes} bytes of incomplete commands");
    }

    /// All clients go on until their commands have run.
    fn finish(&mut self) {
        let is_busy = |client: &Client| client.left + client.arrived + client.waiting > 0;
        let mut rounds = 0;
        while self.all.iter().any(is_busy) {
            rounds += 1;
            assert!(rounds < 1000, "the clients are stuck");
            for number in 0..CLIENTS {
                self.turn(number, PIECE);
                self.answer(number);
                self.check();
            }
        }
    }
}

#[test]
fn any_steps_of_clients_keep_order_and_memory_and_none_is_stuck() {
    let mut without_room = 0;
    for seed in 0..300 {
        let mut clients = Clients::new(seed);
        for _ in 0..400 {
            clients.step();
            without_room += usize::from(!clients.hall.floor().has_room());
        }
        clients.finish();
        let stands = clients.all.iter().map(|client| client.share.stand);
        let left: Vec<Stand> = stands.filter(|stand| *stand != Stand::Seated).collect();
        assert!(left.is_empty(), "seed {seed}: {left:?}");
        assert!(clients.all.iter().all(|client| client.share.counted == 0));
    }
    assert!(without_room > 10_000, "{without_room} steps without room");
}
