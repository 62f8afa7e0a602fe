//! Parts of a directory that a newer version of this library has written. Each part begins with its
//! version, so an older program refuses it and names it, and the newer one can go on with the
//! directory. Where a part has a check sum, its reader has verified it before it looks at the
//! version. No program writes version 0, which therefore is damage. Called by `folder` and `store`.

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
    /// The part, if it has a version that is newer than the known one.
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
