//! Names of sequences.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a name.
pub const MAX_NAME: usize = 64;

/// The name of a sequence: 1 to 64 visible ASCII characters.
///
/// ```
/// use dunlin_sequencer::Name;
///
/// let name: Name = "orders/eu".parse().unwrap();
/// assert_eq!(name.as_str(), "orders/eu");
/// assert!("two words".parse::<Name>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name(Box<str>);

/// The text cannot be the name of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadName;

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a name from bytes.
    ///
    /// # Errors
    /// They are empty or too long, or one of them is not a visible ASCII character.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadName> {
        let is_name =
            (1..=MAX_NAME).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        match std::str::from_utf8(bytes) {
            Ok(text) if is_name => Ok(Self(text.into())),
            _ => Err(BadName),
        }
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a sequence's name has 1 to {MAX_NAME} visible ASCII characters, and no space"
        )
    }
}

impl std::error::Error for BadName {}
