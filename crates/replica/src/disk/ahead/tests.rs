//! Zeros are written only to reserved room, and change no byte that was written.

use std::io::Cursor;

use super::*;

/// A file in memory, and the end of its reserved room.
#[derive(Default)]
struct Memory {
    file: Cursor<Vec<u8>>,
    reserved: usize,
    writes: usize,
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Memory {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl WriteExt for Memory {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.file.get_mut().truncate(offset);
        self.file.set_position(offset as u64);
        Ok(())
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        self.reserved = offset + size;
        Ok(())
    }
}

impl Ahead<Memory> {
    fn bytes(&self) -> &[u8] {
        self.inner.file.get_ref()
    }
}

#[test]
fn zeros_are_written_once_for_many_writes_and_only_to_reserved_room() {
    let mut file = Ahead::new(Memory::default());
    let mut expected = Vec::new();
    let room = 3 * AHEAD + 1000;
    file.allocate(0, room).unwrap();
    while expected.len() + 5000 <= room {
        let byte = u8::try_from(expected.len() % 251).expect("a remainder of 251 is a byte") + 1;
        let block = vec![byte; 5000];
        file.write_all(&block).unwrap();
        expected.extend_from_slice(&block);
        assert!(file.bytes().len() <= room);
        let (front, rest) = file.bytes().split_at(expected.len());
        assert!(front == expected && rest.iter().all(|it| *it == 0));
    }
    let zeros = file.inner.writes - expected.len() / 5000;
    assert_eq!(zeros, 3);
}

#[test]
fn without_reserved_room_or_at_its_end_no_zeros_are_written() {
    let mut file = Ahead::new(Memory::default());
    file.write_all(&[1; 10]).unwrap();
    assert_eq!(file.bytes(), [1; 10]);
    file.allocate(10, 10).unwrap();
    file.write_all(&[2; 10]).unwrap();
    assert_eq!(file.bytes().len(), 20);
}

#[test]
fn a_write_after_a_truncation_begins_at_the_new_end() {
    let mut file = Ahead::new(Memory::default());
    file.allocate(0, 100).unwrap();
    file.write_all(&[1; 10]).unwrap();
    assert_eq!(file.bytes().len(), 100);
    file.truncate(5).unwrap();
    file.write_all(&[2; 5]).unwrap();
    assert_eq!(file.bytes(), [[1; 5], [2; 5]].concat());
    file.allocate(10, 20).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&[3; 12]).unwrap();
    assert_eq!(file.bytes()[..12], [3; 12]);
    assert_eq!(file.bytes().len(), 30);
}
