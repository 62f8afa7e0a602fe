//! The words of a meta command: key and flags.

use dunlin_store::{MAX_KEY, Seconds, Version};

use crate::limits::{MAX_META_WORDS, MAX_OPAQUE};
use crate::operation::{Expiry, Step, Steps};
use crate::words::Words;
use crate::{base64, expiry, number};

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

const INVALID: &str = "CLIENT_ERROR invalid flag";

/// The reason why a meta command is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    /// It has too many words.
    TooMany,
    /// A flag is wrong; the text is for the client.
    Flag(&'static str),
    /// The opaque token is too long.
    Opaque,
}

/// A key as bytes; the client may have sent it in base64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyBytes<'a> {
    text: &'a [u8],
    bytes: Option<([u8; MAX_KEY], usize)>,
}

/// A meta command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta<'a> {
    key: KeyBytes<'a>,
    words: Words<'a>,
    flags_from: usize,
    options: Options,
}

/// Flags that change what a command does.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Options {
    pub(crate) steps: Steps,
    pub(crate) touch: Option<Expiry>,
    pub(crate) vivify: Option<Expiry>,
    pub(crate) is_quiet: bool,
    pub(crate) with_value: bool,
    pub(crate) leaves_no_trace: bool,
    pub(crate) invalidates: bool,
    pub(crate) empties: bool,
    pub(crate) if_version: Option<Version>,
    pub(crate) version: Option<Version>,
    pub(crate) mode: u8,
    pub(crate) client_flags: u32,
    pub(crate) by: Option<u64>,
    pub(crate) initial: u64,
}

impl<'a> KeyBytes<'a> {
    pub(crate) fn text(text: &'a [u8]) -> Self {
        Self { text, bytes: None }
    }

    /// Decodes the key of a word in base64.
    pub(crate) fn base64(text: &'a [u8]) -> Option<Self> {
        if text.len() > MAX_KEY {
            return None;
        }
        let mut bytes = [0; MAX_KEY];
        let len = base64::decode(text, &mut bytes)?;
        Some(Self {
            text,
            bytes: Some((bytes, len)),
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Some((bytes, len)) => &bytes[..*len],
            None => self.text,
        }
    }

    /// The word that the client has sent for the key.
    pub(crate) fn word(&self) -> &'a [u8] {
        self.text
    }

    pub(crate) fn is_base64(&self) -> bool {
        self.bytes.is_some()
    }
}

impl<'a> Meta<'a> {
    /// Reads key and flags; flags begin at word `flags_from`.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn read(words: Words<'a>, flags_from: usize, now: Seconds) -> Result<Self, Wrong> {
        if words.len() > MAX_META_WORDS {
            return Err(Wrong::TooMany);
        }
        let mut meta = Self {
            key: KeyBytes::text(words.at(1)),
            words,
            flags_from,
            options: Options::default(),
        };
        let mut error = None;
        let mut seen = [false; 128];
        for flag in words.from(flags_from) {
            let is_seen = seen.get_mut(usize::from(flag[0]));
            if is_seen.is_none_or(|is_seen| std::mem::replace(is_seen, true)) {
                return Err(Wrong::Flag("CLIENT_ERROR duplicate flag"));
            }
            match meta.take(flag, now) {
                Ok(()) => {}
                // A later flag of the line may have another error; the last error counts.
                Err(text) if text != INVALID => error = Some(Wrong::Flag(text)),
                Err(text) => return Err(Wrong::Flag(text)),
            }
        }
        let is_long = |flag: &&[u8]| flag[0] == b'O' && flag.len() > MAX_OPAQUE;
        if words.from(flags_from).iter().any(is_long) {
            error = error.or(Some(Wrong::Opaque));
        }
        error.map_or(Ok(meta), Err)
    }

    /// Reads one flag into the options.
    fn take(&mut self, flag: &[u8], now: Seconds) -> Result<(), &'static str> {
        let (letter, token) = (flag[0], &flag[1..]);
        let options = &mut self.options;
        match letter {
            b'b' => match KeyBytes::base64(self.key.text) {
                Some(key) => self.key = key,
                None => return Err("CLIENT_ERROR error decoding key"),
            },
            b'N' | b'T' | b'R' => {
                let Some(at) = expiry::read(token, now) else {
                    return Err(BAD_TOKEN);
                };
                options.on_time(letter, at);
            }
            b'C' | b'E' => {
                let Some(version) = number::read(token) else {
                    return Err(BAD_TOKEN);
                };
                options.on_version(letter, Version(version));
            }
            b'F' => match number::read(token) {
                Some(flags) => options.client_flags = flags,
                None => return Err("CLIENT_ERROR bad command line format"),
            },
            b'M' => match token {
                [mode] => options.mode = *mode,
                _ => return Err("CLIENT_ERROR incorrect length for M token"),
            },
            b'J' => match number::read(token) {
                Some(initial) => options.initial = initial,
                None => return Err("CLIENT_ERROR invalid numeric initial value"),
            },
            b'D' => match number::read(token) {
                Some(by) => options.by = Some(by),
                None => return Err("CLIENT_ERROR invalid numeric delta value"),
            },
            b'v' => options.with_value = true,
            b'u' => options.leaves_no_trace = true,
            b'q' => options.is_quiet = true,
            b'I' => options.invalidates = true,
            b'x' if self.words.at(0) == b"md" => options.empties = true,
            // These flags ask for a part of the answer, or are for proxies and have no effect here.
            b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' | b'O' | b'P' | b'L' => {}
            _ => return Err(INVALID),
        }
        Ok(())
    }

    pub(crate) fn key(&self) -> &KeyBytes<'a> {
        &self.key
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// All flags, in the client's order.
    pub(crate) fn flags(&self) -> &[&'a [u8]] {
        self.words.from(self.flags_from)
    }
}

impl Options {
    fn on_time(&mut self, letter: u8, at: Expiry) {
        self.steps.push(match letter {
            b'N' => Step::Vivify(at),
            b'T' => Step::Touch(at),
            _ => Step::Recache(at),
        });
        match letter {
            b'N' => self.vivify = Some(at),
            b'T' => self.touch = Some(at),
            _ => {}
        }
    }

    fn on_version(&mut self, letter: u8, version: Version) {
        // Version 0 matches nothing, as in memcached; `cas` and `ms` handle it themselves.
        match letter {
            b'C' => self.if_version = Some(version),
            _ => self.version = Some(version),
        }
    }
}
