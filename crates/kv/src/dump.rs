//! Files of items, as lines of text.
//!
//! ```text
//! key TAB value [TAB flags [TAB second of 1970 at which it expires, or 0]]
//! ```
//! A backslash escapes bytes that are not UTF-8 or have a meaning in a line: `\\`, `\t`, `\n`,
//! `\r`, and `\x` with two hexadecimal digits. Other programs may write such a list, too.
//!
//! A *dump* also has marks, which are lines that begin with a tab: the first line names format and
//! server, others show the progress of the dump, and the last one is its end. Each mark after the
//! first line has the number of items before it, the number of items that were left out if there
//! are any, and a checksum over the items before it, the server and the mark itself. So a reader
//! detects a file that is truncated or changed. Nothing here reads files.

use std::fmt;

use dunlin_store::{MAX_KEY, MAX_VALUE, route};

/// The longest line, without its line feed: every byte escaped, and two numbers.
pub const MAX_LINE: usize = 4 * (MAX_KEY + MAX_VALUE) + 64;

/// An item of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The writer's flags.
    pub flags: u32,
    /// When it expires, in seconds since 1970; 0: never.
    pub expires: u64,
}

/// The progress of a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The tag of the server's map.
    pub tag: u32,
    /// The next partition.
    pub partition: u16,
    /// The place in that partition at which the dump continues.
    pub place: u64,
    /// The number of items so far that no message of the server could carry.
    pub left_out: u64,
}

/// The sum of the item lines of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    items: u64,
    check: u64,
}

/// The reason why a line is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadLine {
    /// It has no value.
    NoValue,
    /// It has more than four fields.
    TooManyFields,
    /// The key is empty or too long.
    Key,
    /// The value is too long.
    Value,
    /// A backslash is not followed by an escape.
    Escape,
    /// Flags or expiry are not a number, or the number is too large.
    Number,
    /// The line is not a mark, or has another format.
    Mark,
    /// The lines before a mark differ from those that were written.
    Check,
    /// A line after the end.
    AfterEnd,
}

/// Reads the lines of a list or a dump.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    is_begun: bool,
    /// The tag of the server, if the file is a dump.
    tag: Option<u32>,
    sum: Sum,
    mark: Option<Mark>,
    left_out: u64,
    is_over: bool,
}

impl Sum {
    /// Items so far.
    #[must_use]
    pub const fn items(self) -> u64 {
        self.items
    }

    /// A mark with its checksum, as a line.
    fn seal(self, tag: u32, text: String) -> String {
        let check = route(format!("{tag}\t{text}\t{}", self.check).as_bytes());
        format!("\t{text}\t{check:016x}\n")
    }

    /// Adds the line of an item, without its line feed.
    pub fn on_line(&mut self, line: &[u8]) {
        self.items += 1;
        self.check = (self.check.rotate_left(5) ^ route(line)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Item {
    /// Appends the item's line.
    pub fn write(&self, out: &mut Vec<u8>) {
        escape(&self.key, out);
        out.push(b'\t');
        escape(&self.value, out);
        if self.flags != 0 || self.expires != 0 {
            out.extend_from_slice(format!("\t{}", self.flags).as_bytes());
        }
        if self.expires != 0 {
            out.extend_from_slice(format!("\t{}", self.expires).as_bytes());
        }
        out.push(b'\n');
    }

    fn read(line: &[u8]) -> Result<Self, BadLine> {
        let mut fields = line.split(|byte| *byte == b'\t');
        let key = unescape(fields.next().unwrap_or_default())?;
        let value = unescape(fields.next().ok_or(BadLine::NoValue)?)?;
        let (flags, expires) = (number(fields.next())?, number(fields.next())?);
        if fields.next().is_some() {
            return Err(BadLine::TooManyFields);
        }
        if !(1..=MAX_KEY).contains(&key.len()) {
            return Err(BadLine::Key);
        }
        if value.len() > MAX_VALUE {
            return Err(BadLine::Value);
        }
        let flags = u32::try_from(flags).map_err(|_| BadLine::Number)?;
        Ok(Self {
            key,
            value,
            flags,
            expires,
        })
    }
}

impl Mark {
    /// The start of the dump of a server with this tag.
    #[must_use]
    pub const fn start(tag: u32) -> Self {
        Self {
            tag,
            partition: 0,
            place: 0,
            left_out: 0,
        }
    }

    /// Appends the first line of a dump of the server with this tag.
    pub fn write_first(tag: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("\tdunlin-kv-dump\t1\t{tag}\n").as_bytes());
    }

    /// Appends the line of a mark after items with this sum.
    pub fn write(self, sum: Sum, out: &mut Vec<u8>) {
        let text = format!("mark\t{}\t{}\t{}", self.partition, self.place, sum.items);
        self.seal(text, sum, out);
    }

    /// Appends the last line of a dump.
    pub fn write_end(self, sum: Sum, out: &mut Vec<u8>) {
        self.seal(format!("end\t{}", sum.items), sum, out);
    }

    fn seal(self, mut text: String, sum: Sum, out: &mut Vec<u8>) {
        if self.left_out > 0 {
            text.push_str(&format!("\t{}", self.left_out));
        }
        out.extend_from_slice(sum.seal(self.tag, text).as_bytes());
    }
}

impl Reader {
    /// Takes the next line, without its line feed. Returns its item, if it has one.
    ///
    /// # Errors
    /// The line is neither an item nor a mark that fits. The reader can continue; the other items
    /// of a list with bad lines are still valid.
    pub fn on_line(&mut self, line: &[u8]) -> Result<Option<Item>, BadLine> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if self.is_over {
            return Err(BadLine::AfterEnd);
        }
        if let Some(mark) = line.strip_prefix(b"\t") {
            self.on_mark(mark, is_first)?;
            return Ok(None);
        }
        if line.is_empty() {
            return Ok(None);
        }
        let item = Item::read(line)?;
        self.sum.on_line(line);
        Ok(Some(item))
    }

    fn on_mark(&mut self, line: &[u8], is_first: bool) -> Result<(), BadLine> {
        let text = std::str::from_utf8(line).map_err(|_| BadLine::Mark)?;
        let fields: Vec<&str> = text.split('\t').collect();
        if let (Some(tag), Some((text, _))) = (self.tag, text.rsplit_once('\t')) {
            let sealed = self.sum.seal(tag, text.to_owned());
            if sealed.trim_matches(['\t', '\n']).as_bytes() != line {
                return Err(BadLine::Check);
            }
        }
        match (fields.as_slice(), self.tag) {
            (["dunlin-kv-dump", "1", tag], None) if is_first => {
                self.tag = Some(tag.parse().map_err(|_| BadLine::Mark)?);
            }
            (["mark", partition, place, items, left_out @ .., _], Some(tag)) => {
                let partition = partition.parse().map_err(|_| BadLine::Mark)?;
                let place = place.parse().map_err(|_| BadLine::Mark)?;
                self.check(items, left_out)?;
                self.mark = Some(Mark {
                    tag,
                    partition,
                    place,
                    left_out: self.left_out,
                });
            }
            (["end", items, left_out @ .., _], Some(_)) => {
                self.check(items, left_out)?;
                self.is_over = true;
            }
            _ => return Err(BadLine::Mark),
        }
        Ok(())
    }

    /// Compares the number of items in a mark, and takes the number of items that are left out.
    fn check(&mut self, items: &str, left_out: &[&str]) -> Result<(), BadLine> {
        self.left_out = match left_out {
            [] => 0,
            [number] => number.parse().map_err(|_| BadLine::Mark)?,
            _ => return Err(BadLine::Mark),
        };
        match items.parse() == Ok(self.sum.items) {
            true => Ok(()),
            false => Err(BadLine::Check),
        }
    }

    /// The tag of the dump's server; `None` if the file is a list.
    #[must_use]
    pub const fn tag(&self) -> Option<u32> {
        self.tag
    }

    /// The sum of the items so far.
    #[must_use]
    pub const fn sum(&self) -> Sum {
        self.sum
    }

    /// The last mark.
    #[must_use]
    pub const fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// The number of items that the dump leaves out, according to its last mark.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether the file may end here: it is a list, or a dump whose last line was read.
    #[must_use]
    pub const fn may_end(&self) -> bool {
        self.tag.is_none() || self.is_over
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                0..=0x1f | 0x7f => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                _ => out.push(byte),
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
}

fn unescape(field: &[u8]) -> Result<Vec<u8>, BadLine> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'\\') => b'\\',
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'x') => {
                let mut digit = || {
                    let digit = char::from(*rest.next()?).to_digit(16)?;
                    u8::try_from(digit).ok()
                };
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(BadLine::Escape);
                };
                high << 4 | low
            }
            _ => return Err(BadLine::Escape),
        });
    }
    Ok(bytes)
}

fn number(field: Option<&[u8]>) -> Result<u64, BadLine> {
    let Some(field) = field else { return Ok(0) };
    let text = std::str::from_utf8(field).map_err(|_| BadLine::Number)?;
    text.parse().map_err(|_| BadLine::Number)
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoValue => "no value: key and value are separated by a tab",
            Self::TooManyFields => "more than four fields; a tab in a value is `\\t`",
            Self::Key => "a key has 1 to 250 bytes",
            Self::Value => "a value has at most 1048576 bytes",
            Self::Escape => "`\\` is not followed by `\\`, `t`, `n`, `r`, or `x` and two digits",
            Self::Number => "flags (32 bits) and expiry are numbers",
            Self::Mark => "a line that begins with a tab must be a mark of a dump",
            Self::Check => "the lines before it differ from those that were written",
            Self::AfterEnd => "a line after the end of the dump",
        })
    }
}

impl std::error::Error for BadLine {}

#[cfg(test)]
mod tests;
