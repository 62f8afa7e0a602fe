//! [`KEYED`](super::format::KEYED): one operation on one key.
//!
//! ```text
//! 0   version, operation, length of the key, options   4 bytes
//! 4   tag of the map by which the client routes        u32
//! 8   fields of the operation                          0 to 16 bytes
//! ..  key, and of a write the value
//! ```

use dunlin_store::{Delta, MAX_KEY, MAX_VALUE, Verb, copy_short};

use super::cursor::{Cursor, Pen, halves};
use super::format::{Malformed, VERSION};

/// The option bit of an operation that requires a certain version of the item.
const IF_VERSION: u8 = 1;

const HEADER: usize = 8;

/// Bytes of a write before its key.
const WRITE: usize = HEADER + 16;

/// The reason why a request fits into its buffer.
const ROOM: &str = "the caller has made room for the request";

/// The reason why the length of a key fits into a byte.
const CHECKED: &str = "the caller has checked the key";

/// The operations, as numbered on the wire.
mod code {
    pub(super) const GET: u8 = 1;
    pub(super) const SLICE: u8 = 2;
    pub(super) const SET: u8 = 3;
    pub(super) const ADD: u8 = 4;
    pub(super) const REPLACE: u8 = 5;
    pub(super) const APPEND: u8 = 6;
    pub(super) const PREPEND: u8 = 7;
    pub(super) const UP: u8 = 8;
    pub(super) const DOWN: u8 = 9;
    pub(super) const DELETE: u8 = 10;
    pub(super) const TOUCH: u8 = 11;

    /// Bytes between the header and the key of a request with this code.
    pub(super) const fn fields_len(code: u8) -> usize {
        match code {
            SLICE..=DOWN => 16,
            DELETE | TOUCH => 8,
            _ => 0,
        }
    }
}

/// An operation on one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Reads an item.
    Get {
        /// Its key.
        key: &'a [u8],
    },
    /// Reads more of a value that is longer than an answer.
    Slice {
        /// Its key.
        key: &'a [u8],
        /// The stamp of the write, from the first answer.
        stamp: u64,
        /// The offset of the first byte that is wanted.
        from: u32,
    },
    /// Writes an item.
    Write(Store<'a>),
    /// Changes a counter.
    Count {
        /// Its key.
        key: &'a [u8],
        /// The change.
        delta: Delta,
        /// If given, the item must have this version.
        if_version: Option<u64>,
    },
    /// Deletes an item.
    Delete {
        /// Its key.
        key: &'a [u8],
        /// If given, the item must have this version.
        if_version: Option<u64>,
    },
    /// Changes when an item expires.
    Touch {
        /// Its key.
        key: &'a [u8],
        /// Seconds from now on; 0: it never expires.
        lifetime: u32,
    },
}

/// A write.
///
/// ```
/// use dunlin_kv::Store;
/// let one_minute = Store { lifetime: 60, ..Store::set(b"name", b"dunlin") };
/// # let _ = one_minute;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store<'a> {
    /// The condition for the write, and its effect on an existing value.
    pub verb: Verb,
    /// The key.
    pub key: &'a [u8],
    /// The value, or the bytes to add to it.
    pub value: &'a [u8],
    /// A number that is kept with the item.
    pub flags: u32,
    /// Seconds until the item expires; 0: never.
    pub lifetime: u32,
    /// If given, the item must have this version: compare-and-set.
    pub if_version: Option<u64>,
}

impl<'a> Store<'a> {
    /// A write that sets a value, without flags and expiry.
    #[must_use]
    pub const fn set(key: &'a [u8], value: &'a [u8]) -> Self {
        Self {
            verb: Verb::Set,
            key,
            value,
            flags: 0,
            lifetime: 0,
            if_version: None,
        }
    }

    /// Writes the request into a buffer of its size.
    #[inline(always)]
    fn encode(&self, tag: u32, out: &mut [u8]) {
        let (fixed, room) = out.split_first_chunk_mut::<WRITE>().expect(ROOM);
        let options = options(self.if_version);
        let words = [
            header(self.code(), self.key.len(), options, tag),
            self.if_version.unwrap_or(0),
            u64::from(self.flags) | u64::from(self.lifetime) << 32,
        ];
        for (place, word) in fixed.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        let (key, value) = room.split_at_mut(self.key.len());
        copy_short(key, self.key);
        copy_short(value, self.value);
    }

    /// Reads a write and the tag of its map.
    ///
    /// # Errors
    /// If the bytes are not a write of this version.
    #[inline]
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<(u32, Self), Malformed> {
        let mut cursor = Cursor(bytes);
        let [start, version, times] = cursor.words()?;
        let ([start, tag], [flags, lifetime]) = (halves(start), halves(times));
        let [VERSION, code, key_len, options] = start.to_le_bytes() else {
            return Err(Malformed);
        };
        let verb = verb(code).ok_or(Malformed)?;
        let if_version = match (options, version) {
            (IF_VERSION, version) => Some(version),
            (0, 0) => None,
            _ => return Err(Malformed),
        };
        let key = cursor.bytes(key_len.into())?;
        if key.is_empty() || key.len() > MAX_KEY || cursor.0.len() > MAX_VALUE {
            return Err(Malformed);
        }
        let store = Self {
            verb,
            key,
            value: cursor.0,
            flags,
            lifetime,
            if_version,
        };
        Ok((tag, store))
    }

    /// Reads a request for which [`Request::decode_set`] has found this key.
    #[inline]
    pub(crate) fn of_plain_set(bytes: &'a [u8], key: &'a [u8]) -> Self {
        let (fixed, rest) = bytes
            .split_first_chunk::<WRITE>()
            .unwrap_or((&[0; WRITE], &[]));
        let [flags, lifetime] = halves(u64::from_le_bytes(fixed.as_chunks().0[2]));
        Self {
            flags,
            lifetime,
            ..Self::set(key, rest.get(key.len()..).unwrap_or_default())
        }
    }

    #[inline]
    const fn code(&self) -> u8 {
        match self.verb {
            Verb::Set => code::SET,
            Verb::Add => code::ADD,
            Verb::Replace => code::REPLACE,
            Verb::Append => code::APPEND,
            Verb::Prepend => code::PREPEND,
        }
    }
}

impl<'a> Request<'a> {
    /// The key.
    #[inline]
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        match self {
            Self::Get { key }
            | Self::Slice { key, .. }
            | Self::Count { key, .. }
            | Self::Delete { key, .. }
            | Self::Touch { key, .. } => key,
            Self::Write(store) => store.key,
        }
    }

    /// Whether the operation only reads, so that it may run twice.
    #[inline]
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Get { .. } | Self::Slice { .. })
    }

    /// Whether it reads an item from the beginning.
    #[inline]
    pub(crate) const fn is_get(&self) -> bool {
        matches!(self, Self::Get { .. })
    }

    /// Whether key and value have lengths that the protocol allows.
    #[inline]
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        let key = self.key().len();
        let value = match self {
            Self::Write(store) => store.value.len(),
            _ => 0,
        };
        (1..=MAX_KEY).contains(&key) && value <= MAX_VALUE
    }

    /// The length of the request in bytes.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        let (fields, value) = match self {
            Self::Get { .. } => (0, 0),
            Self::Slice { .. } | Self::Count { .. } => (16, 0),
            Self::Write(store) => (16, store.value.len()),
            Self::Delete { .. } | Self::Touch { .. } => (8, 0),
        };
        HEADER + fields + self.key().len() + value
    }

    /// Writes the request into [`Self::size`] bytes.
    ///
    /// # Panics
    /// If `out` is shorter, or the key longer than 255 bytes; see [`Self::is_in_range`].
    #[inline(always)]
    pub fn encode(&self, tag: u32, out: &mut [u8]) {
        match self {
            Self::Get { key } => {
                let (place, room) = out.split_first_chunk_mut().expect(ROOM);
                *place = header(code::GET, key.len(), 0, tag).to_le_bytes();
                copy_short(room, key);
            }
            Self::Write(store) => store.encode(tag, out),
            _ => self.encode_fields(tag, out),
        }
    }

    /// Writes a request that is neither a get nor a write.
    #[inline(never)]
    fn encode_fields(&self, tag: u32, out: &mut [u8]) {
        let key = self.key();
        let version = self.if_version().unwrap_or(0).to_le_bytes();
        let mut pen = Pen::new(out);
        let options = options(self.if_version());
        pen.put(&header(self.code(), key.len(), options, tag).to_le_bytes());
        match self {
            Self::Get { .. } | Self::Write(_) => {}
            Self::Slice { stamp, from, .. } => {
                pen.put(&stamp.to_le_bytes());
                pen.put(&from.to_le_bytes());
                pen.put(&[0; 4]);
            }
            Self::Count { delta, .. } => {
                let (Delta::Up(by) | Delta::Down(by)) = delta;
                pen.put(&version);
                pen.put(&by.to_le_bytes());
            }
            Self::Delete { .. } => pen.put(&version),
            Self::Touch { lifetime, .. } => {
                pen.put(&lifetime.to_le_bytes());
                pen.put(&[0; 4]);
            }
        }
        pen.put(key);
    }

    /// Reads a request and the tag of its map.
    ///
    /// # Errors
    /// If the bytes are not a request of this version.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<(u32, Self), Malformed> {
        let mut cursor = Cursor(bytes);
        let [version, code, key_len, options] = cursor.take()?;
        if verb(code).is_some() {
            return Store::decode(bytes).map(|(tag, store)| (tag, Self::Write(store)));
        }
        let tag = cursor.u32()?;
        let key_len = usize::from(key_len);
        if version != VERSION || options & !IF_VERSION != 0 || !(1..=MAX_KEY).contains(&key_len) {
            return Err(Malformed);
        }
        let is_conditional = options == IF_VERSION;
        let request = Self::decode_fields(cursor, code, key_len, is_conditional)?;
        let may_be_conditional = !matches!(
            request,
            Self::Get { .. } | Self::Slice { .. } | Self::Touch { .. }
        );
        match is_conditional && !may_be_conditional {
            true => Err(Malformed),
            false => Ok((tag, request)),
        }
    }

    /// The key, if the bytes are a get with this map's tag, as most requests are. One comparison
    /// checks the whole header.
    #[inline]
    pub(crate) fn decode_get(bytes: &'a [u8], tag: u32) -> Option<&'a [u8]> {
        let (start, key) = bytes.split_first_chunk::<HEADER>()?;
        if !(1..=MAX_KEY).contains(&key.len()) {
            return None;
        }
        let is_get = u64::from_le_bytes(*start) == header(code::GET, key.len(), 0, tag);
        is_get.then_some(key)
    }

    /// Whether the bytes have the code of a set.
    #[inline]
    pub(crate) fn claims_set(bytes: &[u8]) -> bool {
        bytes.get(1) == Some(&code::SET)
    }

    /// The key, if the bytes are a set with this map's tag and without a condition, as most writes
    /// are. [`Store::of_plain_set`] reads the rest.
    #[inline]
    pub(crate) fn decode_set(bytes: &'a [u8], tag: u32) -> Option<&'a [u8]> {
        let (fixed, rest) = bytes.split_first_chunk::<WRITE>()?;
        let [start, version, _] = [0, 1, 2].map(|at| u64::from_le_bytes(fixed.as_chunks().0[at]));
        let [_, _, key_len, ..] = start.to_le_bytes();
        let key_len = usize::from(key_len);
        let is_set = start == header(code::SET, key_len, 0, tag) && version == 0;
        let is_in_range = (1..=MAX_KEY).contains(&key_len) && rest.len() <= MAX_VALUE + key_len;
        rest.get(..key_len).filter(|_| is_set && is_in_range)
    }

    /// The key of a request. Nothing else is checked; the request is decoded completely later.
    ///
    /// # Errors
    /// If the bytes have no key where the header says.
    #[inline]
    pub(crate) fn find_key(bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
        let [_, code, key_len, ..] = *bytes.first_chunk::<HEADER>().ok_or(Malformed)?;
        let start = HEADER + code::fields_len(code);
        let key = bytes.get(start..start + usize::from(key_len));
        let key = key.filter(|key| (1..=MAX_KEY).contains(&key.len()));
        key.ok_or(Malformed)
    }

    #[inline]
    fn decode_fields(
        mut cursor: Cursor<'a>,
        code: u8,
        key_len: usize,
        is_conditional: bool,
    ) -> Result<Self, Malformed> {
        let request = match code {
            code::GET => Self::Get {
                key: cursor.bytes(key_len)?,
            },
            code::SLICE => {
                let (stamp, from) = (cursor.u64()?, cursor.u32()?);
                cursor.zeros::<4>()?;
                let key = cursor.bytes(key_len)?;
                Self::Slice { key, stamp, from }
            }
            code::UP | code::DOWN => {
                let if_version = condition(&mut cursor, is_conditional)?;
                let by = cursor.u64()?;
                let is_up = code == code::UP;
                Self::Count {
                    key: cursor.bytes(key_len)?,
                    delta: if is_up {
                        Delta::Up(by)
                    } else {
                        Delta::Down(by)
                    },
                    if_version,
                }
            }
            code::DELETE => {
                let if_version = condition(&mut cursor, is_conditional)?;
                let key = cursor.bytes(key_len)?;
                Self::Delete { key, if_version }
            }
            code::TOUCH => {
                let lifetime = cursor.u32()?;
                cursor.zeros::<4>()?;
                let key = cursor.bytes(key_len)?;
                Self::Touch { key, lifetime }
            }
            _ => return Err(Malformed),
        };
        cursor.end()?;
        Ok(request)
    }

    fn if_version(&self) -> Option<u64> {
        match self {
            Self::Write(store) => store.if_version,
            Self::Count { if_version, .. } | Self::Delete { if_version, .. } => *if_version,
            Self::Get { .. } | Self::Slice { .. } | Self::Touch { .. } => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Get { .. } => code::GET,
            Self::Slice { .. } => code::SLICE,
            Self::Write(store) => store.code(),
            Self::Count { delta, .. } => match delta {
                Delta::Up(_) => code::UP,
                Delta::Down(_) => code::DOWN,
            },
            Self::Delete { .. } => code::DELETE,
            Self::Touch { .. } => code::TOUCH,
        }
    }
}

/// The verb of a write; `None` if the code is not that of a write.
#[inline]
const fn verb(code: u8) -> Option<Verb> {
    Some(match code {
        code::SET => Verb::Set,
        code::ADD => Verb::Add,
        code::REPLACE => Verb::Replace,
        code::APPEND => Verb::Append,
        code::PREPEND => Verb::Prepend,
        _ => return None,
    })
}

/// The header of a request, as a number.
///
/// # Panics
/// If the key is longer than 255 bytes.
#[inline]
fn header(code: u8, key_len: usize, options: u8, tag: u32) -> u64 {
    let key_len = u8::try_from(key_len).expect(CHECKED);
    let start = u32::from_le_bytes([VERSION, code, key_len, options]);
    u64::from(start) | u64::from(tag) << 32
}

/// The options of a request with or without this condition.
#[inline]
fn options(if_version: Option<u64>) -> u8 {
    if_version.map_or(0, |_| IF_VERSION)
}

/// The version that an item must have. Without the option, the field is 0.
fn condition(cursor: &mut Cursor<'_>, is_conditional: bool) -> Result<Option<u64>, Malformed> {
    match (is_conditional, cursor.u64()?) {
        (true, version) => Ok(Some(version)),
        (false, 0) => Ok(None),
        (false, _) => Err(Malformed),
    }
}

/// Replaces the tag in an encoded request, when a client gets a new map.
pub(crate) fn set_tag(request: &mut [u8], tag: u32) {
    if let Some(field) = request.get_mut(4..8) {
        field.copy_from_slice(&tag.to_le_bytes());
    }
}
