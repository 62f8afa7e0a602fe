//! Parts of a directory that a newer version of this library has written. Each part begins with its
//! version, so an older program can name the part that it refuses, and the newer program can still
//! use the directory. Readers check the version after the checksum, where a part has one. No
//! program writes version 0, so a version of 0 means damage. Called by `folder` and `store`.

use std::fmt;

/// A part of a directory that a newer version of this library has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewerPart {
    /// The file or record, in words.
    pub part: &'static str,
    /// The version of its format.
    pub version: u8,
    /// The newest version that this library reads.
    pub known: u8,
}

impl NewerPart {
    /// Makes the part if its version is newer than the known one.
    pub(super) fn find(part: &'static str, version: Option<u8>, known: u8) -> Option<Self> {
        let version = version.filter(|&version| version > known)?;
        Some(Self {
            part,
            version,
            known,
        })
    }
}

impl fmt::Display for NewerPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            part,
            version,
            known,
        } = self;
        write!(
            f,
            "data of format {version} in {part}, and this program reads format {known}"
        )
    }
}
