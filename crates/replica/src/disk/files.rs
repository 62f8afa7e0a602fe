//! The engine's files. On a full disk, the engine would begin another file and try again, twice for
//! each write. These files instead report an error that the engine returns at once. So a write on a
//! full disk changes nothing, and can be tried again when there is room.

use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use raft_engine::env::{DefaultFileSystem, FileSystem, Permission, WriteExt};

use super::ahead::Ahead;

/// The file system, for the engine.
#[derive(Default)]
pub(super) struct Files;

type Handle = <DefaultFileSystem as FileSystem>::Handle;

/// A writer of one of the engine's files.
pub(super) struct Writer(Ahead<<DefaultFileSystem as FileSystem>::Writer>);

/// Whether an error means that the disk is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

/// Whether the disk has room for this number of bytes: the function makes a file, reserves them in
/// it, and removes it. If the reservation fails for another reason, as on a file system that
/// reserves nothing, the write itself will show whether there is room.
pub(super) fn has_room<F: FileSystem>(files: &F, path: &Path, bytes: u64) -> io::Result<bool> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let file = match files.create(path) {
        Err(error) if is_full(&error) => return Ok(false),
        created => created?,
    };
    let mut writer = files.new_writer(Arc::new(file))?;
    let reserved = writer.allocate(0, bytes);
    drop(writer);
    match files.delete(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(!reserved.is_err_and(|error| is_full(&error)))
}

/// Replaces the error by one in which the engine does not recognise a full disk.
fn plain(error: io::Error) -> io::Error {
    match is_full(&error) {
        true => io::Error::new(error.kind(), "the disk has no room"),
        false => error,
    }
}

impl FileSystem for Files {
    type Handle = Handle;
    type Reader = <DefaultFileSystem as FileSystem>::Reader;
    type Writer = Writer;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Handle> {
        DefaultFileSystem.create(path)
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Handle> {
        DefaultFileSystem.open(path, permission)
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        DefaultFileSystem.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        DefaultFileSystem.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<Handle>) -> io::Result<Self::Reader> {
        DefaultFileSystem.new_reader(handle)
    }

    fn new_writer(&self, handle: Arc<Handle>) -> io::Result<Writer> {
        let writer = DefaultFileSystem.new_writer(handle)?;
        Ok(Writer(Ahead::new(writer)))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(plain)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Writer {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl WriteExt for Writer {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.0.truncate(offset)
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        self.0.allocate(offset, size)
    }
}
