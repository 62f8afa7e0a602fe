//! How much memory items take.

use dunlin_store::{Mode, Table, Write};

use super::workload::{Random, key};
use super::{NOW, Outcome};

const MIB: usize = 1 << 20;

pub(crate) fn run() -> Outcome {
    let before = resident_bytes()?;
    store(10_000_000)?;
    let loss = cache(1024 * MIB, before)?;
    println!(
        "live items lost before the log has wrapped: {:.4} %",
        100.0 * loss
    );
    Ok(())
}

/// Fills a store and writes over it with other lengths, ten million times.
fn store(items: u64) -> Outcome {
    let mut table = super::table(1536 * MIB, Mode::Store)?;
    let mut worst: f64 = 0.0;
    for number in 0..items {
        set(&mut table, number, 32)?;
        if number % 1000 == 0 && table.stats().splits > 0 {
            worst = worst.max(bytes_an_item(&table));
        }
    }
    println!(
        "store, {items} items of 16 + 32 bytes: {:.1} bytes an item",
        bytes_an_item(&table)
    );
    println!("the worst moment of growth: {worst:.1} bytes an item");
    let mut random = Random(3);
    for _ in 0..items {
        let number = random.below(items);
        if random.below(2) == 0 {
            let bytes = key(number);
            let key = table.key(&bytes).expect("it has 16 bytes");
            let _ = table.delete(&key, None, NOW);
        } else {
            set(&mut table, number, usize::try_from(random.below(129))?)?;
        }
    }
    let stats = table.stats();
    let overhead = (stats.used_bytes - stats.item_bytes) as f64 / stats.items as f64;
    println!("after {items} deletes and overwrites: {overhead:.1} bytes an item beside its own");
    for number in 0..items {
        set(&mut table, number, 32)?;
    }
    println!(
        "written again with 16 + 32 bytes: {:.1} bytes an item",
        bytes_an_item(&table)
    );
    Ok(())
}

/// Fills a cache until its log wraps; returns the share of items that are lost by then.
fn cache(memory: usize, before: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let mut table = super::table(memory, Mode::Cache)?;
    let mut items = 0;
    while table.stats().laps == 0 {
        set(&mut table, items, 32)?;
        items += 1;
    }
    let lost = items - table.stats().items;
    println!(
        "cache of {} MiB: {items} items of 16 + 32 bytes before the log wraps",
        memory / MIB
    );
    for number in items..3 * items {
        set(&mut table, number, 32)?;
    }
    let resident = resident_bytes()? - before;
    println!(
        "resident over memory: {:.4}",
        resident as f64 / memory as f64
    );
    println!("after three laps: {:?}", table.stats());
    Ok(lost as f64 / items as f64)
}

fn set(table: &mut Table, number: u64, len: usize) -> Outcome {
    let bytes = key(number);
    let key = table.key(&bytes).expect("it has 16 bytes");
    table.write(&key, &Write::set(&[7; 128][..len]), NOW)?;
    Ok(())
}

fn bytes_an_item(table: &Table) -> f64 {
    let stats = table.stats();
    stats.used_bytes as f64 / stats.items as f64
}

/// Memory of this process, as the kernel counts it.
pub(crate) fn resident_bytes() -> Result<usize, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: usize = line
        .and_then(|line| line.split_whitespace().next())
        .ok_or("the kernel does not say how much memory is resident")?
        .parse()?;
    Ok(kib * 1024)
}
