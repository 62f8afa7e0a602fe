//! Files with all items of an index, in key order: a head, records, and their number and checksum
//! at the end. A reader checks the whole file before it uses an item, so it uses no file that is
//! truncated or changed.
//!
//! A snapshot is not the state at one moment: an item that is written or deleted meanwhile may or
//! may not be in it. A file gets its name only after all of it is on the disk.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{error, fmt};

use crate::range::MAX_KEY;
use crate::wire::MAX_VALUE;

/// The version of the files.
pub const FORMAT: u16 = 1;

const MAGIC: [u8; 6] = *b"DINDEX";
/// In place of the length of a key, this ends the records.
const END: u8 = 0;

/// The reason why a file cannot be read.
#[derive(Debug)]
pub enum SnapshotError {
    /// The system returned an error.
    Io(io::Error),
    /// It is not a snapshot.
    NoSnapshot,
    /// A newer version of this program has written it.
    Newer(u16),
    /// It is truncated or changed.
    Damaged,
}

/// Writes a file.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    count: u64,
    sum: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&FORMAT.to_le_bytes())?;
        Ok(Self {
            out,
            count: 0,
            sum: 0,
        })
    }

    /// Writes an item.
    ///
    /// # Errors
    /// Errors of `out`, and [`InvalidInput`](io::ErrorKind::InvalidInput) for an item that clients
    /// cannot write: its key is empty or longer than [`MAX_KEY`], or its value is longer than
    /// [`MAX_VALUE`].
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let (Ok(key_len @ 1..), Ok(value_len), ..=MAX_VALUE) = (
            u8::try_from(key.len()),
            u16::try_from(value.len()),
            value.len(),
        ) else {
            let limits = format!(
                "a snapshot takes keys of 1 to {MAX_KEY} bytes and values of up to {MAX_VALUE}; \
                 this key has {} bytes, and its value {}",
                key.len(),
                value.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, limits));
        };
        let lengths = [&[key_len][..], &value_len.to_le_bytes()].concat();
        for part in [&lengths, key, value] {
            self.out.write_all(part)?;
            self.sum = add_to_sum(self.sum, part);
        }
        self.count += 1;
        Ok(())
    }

    /// Writes the end, and returns the number of items.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn end(mut self) -> io::Result<(W, u64)> {
        self.out.write_all(&[END])?;
        self.out.write_all(&self.count.to_le_bytes())?;
        self.out.write_all(&self.sum.to_le_bytes())?;
        self.out.flush()?;
        Ok((self.out, self.count))
    }
}

/// Reads the items of a snapshot.
///
/// # Errors
/// [`SnapshotError`]; `show` may have been called before the end was found to be wrong.
pub fn read(mut from: impl Read, mut show: impl FnMut(&[u8], &[u8])) -> Result<u64, SnapshotError> {
    let mut head = [0; 8];
    from.read_exact(&mut head)
        .map_err(|_| SnapshotError::NoSnapshot)?;
    let ([magic @ .., low, high], mut sum, mut count) = (head, 0, 0_u64);
    if magic != MAGIC {
        return Err(SnapshotError::NoSnapshot);
    }
    match u16::from_le_bytes([low, high]) {
        FORMAT => {}
        newer => return Err(SnapshotError::Newer(newer)),
    }
    let (mut key, mut value) = (vec![0; MAX_KEY], vec![0; MAX_VALUE]);
    loop {
        let mut key_len = [0];
        from.read_exact(&mut key_len)?;
        if key_len == [END] {
            break;
        }
        let mut value_len = [0; 2];
        from.read_exact(&mut value_len)?;
        let (key, len) = (&mut key[..key_len[0].into()], u16::from_le_bytes(value_len));
        let value = value.get_mut(..len.into()).ok_or(SnapshotError::Damaged)?;
        from.read_exact(key)?;
        from.read_exact(value)?;
        for part in [&[key_len[0], value_len[0], value_len[1]][..], key, value] {
            sum = add_to_sum(sum, part);
        }
        count += 1;
        show(key, value);
    }
    let mut end = [0; 16];
    from.read_exact(&mut end)?;
    let expected = [count.to_le_bytes(), sum.to_le_bytes()].concat();
    let mut rest = [0];
    match end[..] == expected[..] && from.read(&mut rest)? == 0 {
        true => Ok(count),
        false => Err(SnapshotError::Damaged),
    }
}

/// Writes a file, whose items come from `fill`. The file gets its name only after all of it is on
/// the disk.
///
/// # Errors
/// Errors of the system and of `fill`, and [`ResourceBusy`](io::ErrorKind::ResourceBusy) if another
/// process writes a file of that name. An earlier file of that name is then unchanged, unless only
/// the sync of the new name has failed.
pub fn write_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut Writer<BufWriter<&File>>) -> Result<(), E>,
) -> Result<u64, E> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".draft");
    let draft = Path::new(&draft);
    let file = open_draft(draft)?;
    let written = fill_draft(&file, fill).inspect_err(|_| {
        // It may be what fills the disk.
        let _ = fs::remove_file(draft);
    })?;
    // The new name survives a power failure, too.
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = File::open(Path::new(".").join(folder))?;
    fs::rename(draft, path)?;
    folder.sync_all()?;
    Ok(written)
}

/// Opens an empty draft, which no other process opens until it is closed. A process that was killed
/// may have left its draft.
fn open_draft(draft: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(draft)?;
    let is_free = match file.try_lock() {
        // Otherwise, the other process has meanwhile given the file its final name.
        Ok(()) => is_named(&file, draft)?,
        Err(TryLockError::WouldBlock) => false,
        // Some file systems of networks have no locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => true,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    if !is_free {
        let text = format!("another process writes {}", draft.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
    }
    file.set_len(0)?;
    Ok(file)
}

/// Whether the file has this name.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let place = |of: &Metadata| (of.dev(), of.ino());
    match fs::metadata(path) {
        Ok(named) => Ok(place(&named) == place(&file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn fill_draft<E: From<io::Error>>(
    file: &File,
    fill: impl FnOnce(&mut Writer<BufWriter<&File>>) -> Result<(), E>,
) -> Result<u64, E> {
    let mut writer = Writer::new(BufWriter::new(file))?;
    fill(&mut writer)?;
    let (_, count) = writer.end()?;
    file.sync_all()?;
    Ok(count)
}

/// Reads a file twice: the first time to check all of it, the second time to call `show` with the
/// items. So `show` gets no item of a damaged file, even if another file gets its name meanwhile.
///
/// # Errors
/// [`SnapshotError`].
pub fn read_file(path: &Path, show: impl FnMut(&[u8], &[u8])) -> Result<u64, SnapshotError> {
    let mut file = File::open(path)?;
    read(BufReader::new(&file), |_, _| {})?;
    file.rewind()?;
    read(BufReader::new(&file), show)
}

/// FNV-1a with a mixing step.
fn add_to_sum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| {
        let sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        sum.wrapping_add(1) ^ (sum >> 31)
    })
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NoSnapshot => f.write_str("it is not a snapshot of an index"),
            Self::Newer(version) => write!(
                f,
                "a newer program has written it, in version {version} of the format; this one \
                 reads version {FORMAT}"
            ),
            Self::Damaged => f.write_str("it is truncated or changed, and none of it was used"),
        }
    }
}

impl error::Error for SnapshotError {}

#[cfg(test)]
mod tests;
