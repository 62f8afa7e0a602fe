//! Reads what a log has kept: the record of its state, and the entries and items that the record
//! counts. Called by `store` when it opens a log.

use raft::eraftpb::Entry;
use raft_engine::Engine;
use raft_engine::env::FileSystem;

use super::record::{Record, Records};
use super::state::{Parts, State};
use super::store::{ITEMS, LOG, Loss, STATE, incomplete};
use crate::work::Remains;

/// Reads in a thread of its own. For each thread, the engine caches the last block that it has
/// read, by its place in the log. This thread may have read another directory's log, and the engine
/// would then take the cached block for the block at the same place here.
pub(super) fn read_alone<F: FileSystem>(
    engine: &Engine<F>,
    first: (u64, u64),
) -> Result<Option<(State, Remains)>, Loss> {
    let found = std::thread::scope(|scope| scope.spawn(|| read(engine, first)).join());
    found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads the state, and everything that it counts.
fn read<F: FileSystem>(
    engine: &Engine<F>,
    first: (u64, u64),
) -> Result<Option<(State, Remains)>, Loss> {
    let Some(bytes) = engine.get(LOG, STATE) else {
        return Ok(None);
    };
    // The engine has verified the checksum.
    if let Some(newer) = State::newer(&bytes) {
        return Err(Loss::Newer(newer));
    }
    if let Some((format, known)) = State::older(&bytes) {
        return Err(Loss::Older(format, known));
    }
    let state = State::decode(&bytes);
    let mut state = state.map_err(|_| incomplete("the record of its state is damaged"))?;
    state.begin_at(first);
    let remains = Remains {
        promises: state.promises(),
        base: state.base(),
        entries: entries(engine, &state)?,
        items: items(engine, state.items())?,
    };
    Ok(Some((state, remains)))
}

fn entries<F: FileSystem>(engine: &Engine<F>, state: &State) -> Result<Vec<Entry>, Loss> {
    let (first, end) = (state.base().0 + 1, state.last() + 1);
    let mut records = Vec::new();
    let read = engine.fetch_entries_to::<Records>(LOG, first, end, None, &mut records);
    read.map_err(|error| incomplete(&format!("entries {first} to {}: {error}", end - 1)))?;
    let entries: Vec<Entry> = records.into_iter().map(Record::into_entry).collect();
    match entries.iter().map(|entry| entry.index).eq(first..end) {
        true => Ok(entries),
        false => Err(incomplete(&format!(
            "some of entries {first} to {} are gone",
            end - 1
        ))),
    }
}

fn items<F: FileSystem>(engine: &Engine<F>, parts: Parts) -> Result<Option<(u64, Vec<u8>)>, Loss> {
    if parts.applied == 0 {
        return Ok(None);
    }
    let mut image = Vec::new();
    for number in parts.first..=parts.last {
        let part = engine.get_entry::<Records>(ITEMS, number);
        let part =
            part.map_err(|error| incomplete(&format!("part {number} of the items: {error}")))?;
        let part =
            part.ok_or_else(|| incomplete(&format!("part {number} of the items is gone")))?;
        image.extend_from_slice(&part.bytes);
    }
    Ok(Some((parts.applied, image)))
}
