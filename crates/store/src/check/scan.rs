//! Scans of a table in steps, with other operations between them.

use std::collections::BTreeSet;

use super::driver::{Difference, Driver, same, thing};
use super::model::Thing;
use crate::Cursor;

/// A scan that has begun.
#[derive(Debug)]
pub(super) struct ScanRun {
    cursor: Cursor,
    /// The keys that had an item at each step so far.
    steady: BTreeSet<Vec<u8>>,
    seen: BTreeSet<Vec<u8>>,
}

impl Driver {
    /// Scans the next buckets. A scan that has come to its end must have seen each key that had an
    /// item at every step; the next step begins another scan.
    pub(super) fn scan_step(&mut self, buckets: usize) -> Result<(), Difference> {
        let mut items: Vec<(Vec<u8>, Thing)> = Vec::new();
        let mut run = self.scan.take().unwrap_or_else(|| ScanRun {
            cursor: Cursor::default(),
            steady: self.model.all().map(|(key, _)| key.clone()).collect(),
            seen: BTreeSet::new(),
        });
        let next = self.table.scan(run.cursor, buckets, self.now, |item| {
            items.push((item.key().to_vec(), thing(&item)));
        });
        self.take_gone(None)?;
        run.steady.retain(|key| self.model.get(key).is_some());
        for (key, item) in items {
            same("item of a scan", Some(item), self.seen(&key))?;
            run.seen.insert(key);
        }
        if let Some(cursor) = next {
            run.cursor = cursor;
            self.scan = Some(run);
            return Ok(());
        }
        let missed: Vec<_> = run.steady.difference(&run.seen).collect();
        same("keys that a scan has missed", missed, Vec::new())
    }
}
