//! Names and passwords for ASCII authentication (`-Y`): a `set` with any key and `name password` as
//! its value opens the connection.

use std::fmt;

/// Users that may connect.
#[derive(Clone, Default)]
pub struct Users(Vec<(Vec<u8>, Vec<u8>)>);

/// A line of the file is not `name:password`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsersError {
    /// The number of the line, from 1.
    pub line: usize,
}

impl Users {
    /// Reads lines of `name:password`.
    ///
    /// ```
    /// let users = dunlin_memcached::Users::read(b"ann:secret\nbob:hidden\n")?;
    /// assert!(users.knows(b"bob", b"hidden") && !users.knows(b"bob", b"secret"));
    /// # Ok::<(), dunlin_memcached::UsersError>(())
    /// ```
    ///
    /// # Errors
    /// [`UsersError`] names the first line that has no colon.
    pub fn read(file: &[u8]) -> Result<Self, UsersError> {
        let lines = file.split(|byte| *byte == b'\n').enumerate();
        let lines = lines.map(|(number, line)| (number, line.strip_suffix(b"\r").unwrap_or(line)));
        let users = lines.filter(|(_, line)| !line.is_empty());
        let users = users.map(|(number, line)| {
            let colon = line.iter().position(|byte| *byte == b':');
            let colon = colon.ok_or(UsersError { line: number + 1 })?;
            Ok((line[..colon].to_vec(), line[colon + 1..].to_vec()))
        });
        users.collect::<Result<_, _>>().map(Self)
    }

    /// Whether there is a user with this name and password. The time that this takes does not
    /// depend on which bytes are wrong.
    #[must_use]
    pub fn knows(&self, name: &[u8], password: &[u8]) -> bool {
        let is = |user: &(Vec<u8>, Vec<u8>)| is_same(&user.0, name) & is_same(&user.1, password);
        self.0.iter().fold(false, |known, user| known | is(user))
    }
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let difference = pairs.fold(0, |difference, (one, other)| difference | (one ^ other));
    one.len() == other.len() && difference == 0
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.0.len())
    }
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} is not `name:password`", self.line)
    }
}

impl std::error::Error for UsersError {}
