//! A running memcached as a source of items: one connection lists its keys, and another one reads
//! them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{anyhow, bail};
use dunlin::kv::dump::Item;
use dunlin_memcached::encode_base64;

use crate::commands::target::resolve;

/// The most keys that are read at a time.
const KEYS: usize = 100;

/// The longest line of an answer.
const MAX_LINE: u64 = 4096;

/// The longest value of a memcached, by `-I`.
const MAX_VALUE: usize = 1 << 30;

const PATIENCE: Duration = Duration::from_secs(10);

/// A memcached, with two connections to it.
pub(super) struct Source {
    list: BufReader<TcpStream>,
    read: BufReader<TcpStream>,
    is_begun: bool,
    is_over: bool,
    /// Whether it knows meta commands, which memcached has since 1.6.
    has_meta: bool,
}

/// The items of a part of the list, and those that are missing.
#[derive(Default)]
pub(super) struct Part {
    pub(super) items: Vec<Item>,
    /// The number of items that left before they were read.
    pub(super) gone: u64,
    /// Keys with spaces or control characters, which only a meta command can name, in base64, if
    /// memcached refused that name or has no such command. A name has at most 250 bytes.
    pub(super) nameless: Vec<Vec<u8>>,
}

impl Source {
    /// Connects to a memcached, and authenticates if there is a `login`, as `name:password`.
    ///
    /// # Errors
    /// Nothing listens there, or it does not know the user.
    pub(super) fn open(address: &str, login: Option<&str>) -> anyhow::Result<Self> {
        let address = resolve(address)?;
        let connect = || -> std::io::Result<_> {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(BufReader::new(stream))
        };
        let (mut list, mut read) = (connect()?, connect()?);
        for connection in [&mut list, &mut read] {
            log_in(connection, login)?;
        }
        Ok(Self {
            list,
            read,
            is_begun: false,
            is_over: false,
            has_meta: true,
        })
    }

    /// The number of items that it has.
    ///
    /// # Errors
    /// It is not memcached.
    pub(super) fn items(&mut self) -> anyhow::Result<u64> {
        self.read.get_mut().write_all(b"stats\r\n")?;
        let mut items = 0;
        loop {
            let line = next_line(&mut self.read)?;
            match line.strip_prefix("STAT ") {
                None if line == "END" => return Ok(items),
                None => return Err(unexpected(&line)),
                Some(stat) => {
                    if let Some(number) = stat.strip_prefix("curr_items ") {
                        items = number.parse().map_err(|_| unexpected(&line))?;
                    }
                }
            }
        }
    }

    /// The next items; `None`: there are no more.
    ///
    /// # Errors
    /// It does not list its items, or is not memcached.
    pub(super) fn next_items(&mut self) -> anyhow::Result<Option<Part>> {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.has_meta = self.knows_meta()?;
            let command = b"lru_crawler metadump all\r\n";
            self.list.get_mut().write_all(command)?;
        }
        let mut listed: Vec<(Vec<u8>, u64)> = Vec::new();
        while !self.is_over && listed.len() < KEYS {
            let line = next_line(&mut self.list)?;
            match line.as_str() {
                "END" => self.is_over = true,
                line if line.starts_with("key=") => listed.push(listing(line)?),
                line => bail!("it does not list its items: `{line}`"),
            }
        }
        if listed.is_empty() {
            return Ok(None);
        }
        match self.has_meta {
            true => self.read_items(listed).map(Some),
            false => self.read_text_items(listed).map(Some),
        }
    }

    /// Whether it answers a meta command.
    fn knows_meta(&mut self) -> anyhow::Result<bool> {
        self.read.get_mut().write_all(b"mn\r\n")?;
        match next_line(&mut self.read)?.as_str() {
            "MN" => Ok(true),
            "ERROR" => Ok(false),
            line => Err(unexpected(line)),
        }
    }

    /// Reads items by `get`, which can name only keys without spaces and control characters.
    fn read_text_items(&mut self, listed: Vec<(Vec<u8>, u64)>) -> anyhow::Result<Part> {
        let mut part = Part::default();
        let (named, nameless): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|(key, _)| is_text(key));
        part.nameless = nameless.into_iter().map(|(key, _)| key).collect();
        if named.is_empty() {
            return Ok(part);
        }
        let mut command = b"get".to_vec();
        for (key, _) in &named {
            command.push(b' ');
            command.extend_from_slice(key);
        }
        command.extend_from_slice(b"\r\n");
        self.read.get_mut().write_all(&command)?;
        // The items come in the order of their keys, without those that have left.
        let mut named = named.into_iter();
        loop {
            let bytes = next_bytes(&mut self.read)?;
            let line = String::from_utf8_lossy(&bytes);
            if line == "END" {
                part.gone += named.count() as u64;
                return Ok(part);
            }
            let words: Vec<&str> = line.split(' ').collect();
            let ["VALUE", _, flags, len] = words[..] else {
                return Err(unexpected(&line));
            };
            let (flags, len) = (flags.parse(), len.parse());
            let (Ok(flags), Ok(len)) = (flags, len) else {
                return Err(unexpected(&line));
            };
            let before = named.len();
            // Keys are compared as bytes: several that are no text would be the same text.
            let name = bytes.split(|byte| *byte == b' ').nth(1);
            let found = named.find(|(key, _)| Some(&key[..]) == name);
            let (key, expires) = found.ok_or_else(|| unexpected(&line))?;
            part.gone += (before - named.len() - 1) as u64;
            part.items.push(Item {
                key,
                value: self.read_value(len, &line)?,
                flags,
                expires,
            });
        }
    }

    /// Reads the value after a line that has named its length.
    fn read_value(&mut self, len: usize, line: &str) -> anyhow::Result<Vec<u8>> {
        if len > MAX_VALUE {
            return Err(unexpected(line));
        }
        let mut value = Vec::new();
        let mut limited = self.read.by_ref().take(len as u64 + 2);
        limited.read_to_end(&mut value)?;
        if !value.ends_with(b"\r\n") || value.len() != len + 2 {
            bail!("the connection ended in the middle of a value");
        }
        value.truncate(len);
        Ok(value)
    }

    /// Reads items by `mg`.
    fn read_items(&mut self, listed: Vec<(Vec<u8>, u64)>) -> anyhow::Result<Part> {
        let mut commands = Vec::new();
        for (key, _) in &listed {
            commands.extend_from_slice(b"mg ");
            match is_text(key) {
                true => commands.extend_from_slice(key),
                false => {
                    encode_base64(&mut commands, key);
                    commands.extend_from_slice(b" b");
                }
            }
            commands.extend_from_slice(b" v f\r\n");
        }
        self.read.get_mut().write_all(&commands)?;
        let mut part = Part::default();
        for (key, expires) in listed {
            let line = next_line(&mut self.read)?;
            let mut words = line.split(' ');
            let (Some("VA"), Some(len)) = (words.next(), words.next()) else {
                match line.as_str() {
                    "EN" => part.gone += 1,
                    line if line.starts_with("CLIENT_ERROR") && !is_text(&key) => {
                        part.nameless.push(key);
                    }
                    line => return Err(unexpected(line)),
                }
                continue;
            };
            let len = len.parse().map_err(|_| unexpected(&line))?;
            // A memcached may also repeat the flag `b`.
            let flags = words.find_map(|word| word.strip_prefix('f')?.parse().ok());
            let flags = flags.ok_or_else(|| unexpected(&line))?;
            part.items.push(Item {
                key,
                value: self.read_value(len, &line)?,
                flags,
                expires,
            });
        }
        Ok(part)
    }
}

/// Authenticates as memcached wants it: by a `set` whose value is a name and a password.
fn log_in(connection: &mut BufReader<TcpStream>, login: Option<&str>) -> anyhow::Result<()> {
    let Some(login) = login else { return Ok(()) };
    let login = login.replacen(':', " ", 1);
    let command = format!("set login 0 0 {}\r\n{login}\r\n", login.len());
    connection.get_mut().write_all(command.as_bytes())?;
    match next_line(connection)?.as_str() {
        "STORED" => Ok(()),
        refusal => bail!("it does not let this user in: `{}`", refusal.escape_debug()),
    }
}

/// Whether a command may contain this key as it is.
fn is_text(key: &[u8]) -> bool {
    key.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

/// Key and expiry of a line of the list.
fn listing(line: &str) -> anyhow::Result<(Vec<u8>, u64)> {
    let mut words = line.split(' ');
    let key = words.next().and_then(|word| word.strip_prefix("key="));
    let expiry = words.next().and_then(|word| word.strip_prefix("exp="));
    let (Some(key), Some(expiry)) = (key.and_then(decoded), expiry) else {
        return Err(unexpected(line));
    };
    let expires = match expiry {
        "-1" => 0,
        seconds => seconds.parse().map_err(|_| unexpected(line))?,
    };
    Ok((key, expires))
}

/// The bytes of a key. Memcached has written some of them as `%` and two hexadecimal digits.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(bytes)
}

fn next_line(input: &mut BufReader<TcpStream>) -> anyhow::Result<String> {
    let line = next_bytes(input)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn next_bytes(input: &mut BufReader<TcpStream>) -> anyhow::Result<Vec<u8>> {
    let mut line = Vec::new();
    input.take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        bail!("the connection ended in the middle of an answer");
    }
    while line.pop_if(|byte| *byte == b'\r').is_some() {}
    Ok(line)
}

fn unexpected(line: &str) -> anyhow::Error {
    if line == "CLIENT_ERROR unauthenticated" {
        return anyhow!("it wants a name and a password; --from-auth names a file with them");
    }
    anyhow!(
        "it is not memcached: it has answered `{}`",
        line.escape_debug()
    )
}

#[cfg(test)]
mod tests;
