//! The invariants of a table, checked by walking the whole table.

use std::collections::BTreeSet;

use super::driver::Difference;
use crate::Table;

impl Table {
    /// Checks that each entry names an item of the entry's bucket, that no two items overlap or
    /// share a key, that all items are below the index, that no page is lost, that the number of
    /// items is right, and that the sweep will find each item that expires or was flushed.
    pub(crate) fn audit(&self) -> Result<(), Difference> {
        let mut keys = BTreeSet::new();
        let mut ranges = Vec::new();
        for bucket in 0..self.index_buckets() {
            for (key, range) in self.items_of(bucket) {
                let hash = self.key(&key).ok_or("an item has no key")?;
                if self.bucket_of(&hash) != bucket {
                    return Err(format!("{key:?} is in bucket {bucket}"));
                }
                if !keys.insert(key.clone()) {
                    return Err(format!("{key:?} is there twice"));
                }
                ranges.push(range);
            }
        }
        ranges.sort_by_key(|range| range.start);
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
            return Err(format!("items overlap: {pair:?}"));
        }
        let top = ranges.last().map_or(0, |range| range.end);
        if top > self.index_bottom() {
            return Err(format!("an item ends at {top}, in the index"));
        }
        let (in_use, taken) = self.page_bytes();
        if in_use != taken {
            return Err(format!(
                "{in_use} bytes of pages are in use, and {taken} are taken"
            ));
        }
        if !self.is_bounded() {
            return Err("the sweep would not find an item that expires or that was flushed".into());
        }
        let items = self.stats().items;
        if items != keys.len() as u64 {
            return Err(format!(
                "there are {} items, and {items} are counted",
                keys.len()
            ));
        }
        Ok(())
    }
}
