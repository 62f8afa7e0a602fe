//! Hit ratios on one trace, of the table and of a memcached. A miss is followed by a set, as in a
//! program that reads through its cache.

use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;

use dunlin_store::{Mode, Table, Write};

use super::workload::{Random, Zipf, key};
use super::{NOW, Outcome};

/// Requests before hits are counted, and requests that are counted.
const WARM_UP: u64 = 3_000_000;
const COUNTED: u64 = 2_000_000;

/// A cache under test.
trait Cache {
    fn has(&mut self, key: &[u8]) -> std::io::Result<bool>;
    fn set(&mut self, key: &[u8], value: &[u8]) -> std::io::Result<()>;
    fn flush(&mut self) -> std::io::Result<()>;
}

impl Cache for Table {
    fn has(&mut self, bytes: &[u8]) -> std::io::Result<bool> {
        let key = self.key(bytes).expect("keys are short");
        Ok(self.get(&key, NOW).is_some())
    }

    fn set(&mut self, bytes: &[u8], value: &[u8]) -> std::io::Result<()> {
        let key = self.key(bytes).expect("keys are short");
        let written = self.write(&key, &Write::set(value), NOW);
        written.map(|_| ()).map_err(std::io::Error::other)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Table::flush(self, NOW, NOW);
        Ok(())
    }
}

/// A memcached, one request at a time.
struct Memcached(UnixStream);

impl Memcached {
    fn answer(&mut self) -> std::io::Result<u8> {
        let mut answer = [0; 64];
        let mut len = 0;
        while !answer[..len].ends_with(b"\r\n") {
            len += self.0.read(&mut answer[len..])?;
        }
        Ok(answer[0])
    }
}

impl Cache for Memcached {
    fn has(&mut self, key: &[u8]) -> std::io::Result<bool> {
        // The command asks for no value: the answer is `HD` or `EN`.
        self.0.write_all(&[b"mg ", key, b" h\r\n"].concat())?;
        Ok(self.answer()? == b'H')
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        let len = value.len().to_string();
        self.0
            .write_all(&[b"ms ", key, b" ", len.as_bytes(), b"\r\n", value, b"\r\n"].concat())?;
        self.answer().map(|_| ())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.write_all(b"flush_all\r\n")?;
        self.answer().map(|_| ())
    }
}

pub(crate) fn run(socket: &str, mib: usize) -> Outcome {
    let mut table = super::table(mib << 20, Mode::Cache)?;
    let mut memcached = match socket {
        "-" => None,
        socket => Some(Memcached(UnixStream::connect(socket)?)),
    };
    // Sizes are even over powers of two from 16 B to 16 KiB: 2.3 KiB on average.
    let items = 4 * (mib as u64) * (1 << 20) / 2400;
    let zipf = Zipf::new(items, 0.99);
    for scans in [0, 20] {
        let ours = replay(&mut table, &zipf, items, scans)?;
        println!("{mib} MiB, {items} keys, {scans} % of requests scan: {ours:.4} of requests hit");
        if let Some(memcached) = &mut memcached {
            let theirs = replay(memcached, &zipf, items, scans)?;
            println!("memcached: {theirs:.4}");
        }
    }
    println!("{:?}", table.stats());
    Ok(())
}

/// Runs the trace and returns the share of hits.
fn replay(cache: &mut dyn Cache, zipf: &Zipf, items: u64, scans: u64) -> std::io::Result<f64> {
    cache.flush()?;
    let mut random = Random(42);
    let mut scanned = items;
    let mut hits = 0;
    let value = vec![7; 16 << 10];
    for request in 0..WARM_UP + COUNTED {
        let number = if random.below(100) < scans {
            // A key of the scan is asked for once and never again.
            scanned += 1;
            scanned
        } else {
            zipf.draw(&mut random)
        };
        let text = hexadecimal(number);
        let is_hit = cache.has(&text)?;
        if !is_hit {
            cache.set(&text, &value[..len_of(number)])?;
        }
        hits += u64::from(is_hit && request >= WARM_UP);
    }
    Ok(hits as f64 / COUNTED as f64)
}

/// A key of 16 letters.
fn hexadecimal(number: u64) -> Vec<u8> {
    let key = u64::from_le_bytes(key(number)[8..].try_into().expect("eight bytes"));
    format!("{key:016x}").into_bytes()
}

/// The length of a key's value, which never changes.
fn len_of(number: u64) -> usize {
    let mut random = Random(number);
    let power = 4.0 + 10.0 * random.unit();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 16 and 16384"
    )]
    let len = power.exp2() as usize;
    len
}
