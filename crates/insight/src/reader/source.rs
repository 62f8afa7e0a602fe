//! The trait that supplies the bytes of a memory file, and functions that read words from it.
//! Called by all files of the reading side.
//!
//! Invariant: a file with another layout, or one that is too short, is refused.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::layout::{self, WORD, header};

/// A source of the bytes of a memory file.
pub trait Source {
    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// If the bytes cannot be read; `UnexpectedEof` if the file ends before them.
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

impl Source for &File {
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }
}

impl Source for File {
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }
}

impl Source for &[u8] {
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.get(start..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum ReadError {
    /// The file does not begin with the magic number.
    NotOne,
    /// It was written by a release with another layout.
    Version {
        /// The version that the file names.
        found: u64,
    },
    /// The file ends before one of the parts that it announces.
    Truncated {
        /// The place of the missing part.
        at: u64,
    },
    /// The parts of the file contradict each other.
    Damaged(&'static str),
    /// A block was being written in every attempt to read it: the process may be stopped.
    Unfinished,
    /// The file cannot be read.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOne => f.write_str("it is not a counters file of Dunlin"),
            Self::Version { found } => write!(
                f,
                "its layout has version {found}, and this program reads version {}; use the \
                 `dunlin` of the release that the process was built with",
                layout::VERSION
            ),
            Self::Truncated { at } => write!(f, "it is truncated: there is nothing at byte {at}"),
            Self::Damaged(why) => write!(f, "it is damaged: {why}"),
            Self::Unfinished => {
                f.write_str("a part of it is never complete; is the process stopped?")
            }
            Self::Io(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The words of the header.
pub(super) fn read_head(source: &mut dyn Source) -> Result<Vec<u64>, ReadError> {
    let head = words(source, 0, layout::HEADER)?;
    if head[header::MAGIC] != layout::MAGIC {
        return Err(ReadError::NotOne);
    }
    match head[header::VERSION] {
        layout::VERSION => Ok(head),
        found => Err(ReadError::Version { found }),
    }
}

pub(super) fn words(
    source: &mut dyn Source,
    start: u64,
    len: usize,
) -> Result<Vec<u64>, ReadError> {
    let bytes = bytes(source, start, len * WORD)?;
    let words = bytes.chunks_exact(WORD).map(|word| {
        let word = word.try_into().expect("a chunk has the length of a word");
        u64::from_le_bytes(word)
    });
    Ok(words.collect())
}

pub(super) fn bytes(source: &mut dyn Source, start: u64, len: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = vec![0; len];
    match source.read_at(start, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(ReadError::Truncated { at: start })
        }
        Err(error) => Err(error.into()),
    }
}
