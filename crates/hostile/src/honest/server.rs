//! The server: one endpoint over shared memory and UDP. It answers everything, and reports a
//! request that arrives twice or that changes while its handler reads it.

use std::fs;
use std::time::Duration;

use dunlin_nexus::{InsightTcp, Nexus, Rpc};
use dunlin_transport::auto::Auto;
use harness::process::{Parent, Role};

use super::{HONEST, OTHER, answer, number, questions, sum};
use crate::words::{Counts, Event, Serve, Target};

pub(crate) const ROLE: Role = Role::new("server", run);

/// Number of honest requests that the server remembers, to notice a request that arrives twice.
const REMEMBERED: usize = 1 << 16;

/// How often a handler reads the same request. That takes some tens of microseconds, in which a
/// peer may try to change the request.
const LOOKS: usize = 16;

/// The longest sleep of a server that does not spin; a packet ends it earlier.
const PAUSE: Duration = Duration::from_millis(20);

struct Served {
    /// The numbers of the last honest requests, each at the index that its low digits give.
    numbers: Vec<u64>,
    events: Vec<Event>,
}

fn run(parent: &Parent) -> anyhow::Result<()> {
    let Serve { address, spins } = parent.receive()?;
    let builder = Nexus::builder().insight_tcp(InsightTcp::Counters);
    let nexus = builder.bind(&*address)?;
    let served = Served {
        numbers: vec![u64::MAX; REMEMBERED],
        events: Vec::new(),
    };
    let mut rpc: Rpc<Auto, Served> = nexus.endpoint(served)?;
    rpc.on(HONEST, |served: &mut Served, request, cx| {
        let data = request.data();
        served.remember(number(data));
        request.reply(cx, data.len(), |out| answer(data, out));
    });
    rpc.on(OTHER, |served: &mut Served, request, cx| {
        let data = request.data();
        let before = sum(data);
        if (1..LOOKS).any(|_| sum(std::hint::black_box(data)) != before) {
            served.events.push(Event::Changed);
        }
        request.reply(cx, data.len(), |out| answer(data, out));
    });
    parent.say(&Event::Ready(Target {
        address: nexus.address(),
        ports: udp_ports()?,
    }))?;
    let asked = questions();
    loop {
        match spins {
            true => drop(rpc.run_once()),
            false => rpc.run_for(PAUSE),
        }
        for event in rpc.app_mut().events.drain(..) {
            parent.say(&event)?;
        }
        if asked.try_recv().is_ok() {
            parent.say(&Event::Counts(counts(&mut rpc)))?;
        }
    }
}

fn counts(rpc: &mut Rpc<Auto, Served>) -> Counts {
    let lost = rpc.transport_counters().rx_overflow;
    let counters = rpc.counters();
    Counts {
        read: counters.rx_frames,
        refused: counters.drops.total(),
        lost,
    }
}

impl Served {
    fn remember(&mut self, number: Option<u64>) {
        let Some(number) = number else { return };
        let place = usize::try_from(number % REMEMBERED as u64).unwrap_or(0);
        if std::mem::replace(&mut self.numbers[place], number) == number {
            self.events.push(Event::Twice(number));
        }
    }
}

/// The UDP ports of this process.
fn udp_ports() -> anyhow::Result<Vec<u16>> {
    let files = fs::read_dir("/proc/self/fd")?;
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.display().to_string()).collect();
    let table = fs::read_to_string("/proc/self/net/udp")?;
    let port = |line: &str| {
        let mut fields = line.split_whitespace();
        let (_, port) = fields.nth(1)?.split_once(':')?;
        let socket = format!("socket:[{}]", fields.nth(7)?);
        let is_ours = sockets.contains(&socket);
        u16::from_str_radix(port, 16).ok().filter(|_| is_ours)
    };
    Ok(table.lines().skip(1).filter_map(port).collect())
}
