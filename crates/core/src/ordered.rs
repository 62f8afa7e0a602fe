//! An ordered map and set that need little code. The compiler generates each kind of map anew for
//! each pair of key and value types, and the standard library's trees were almost half of what a
//! program with Dunlin compiled (docs/decisions/weight.md).
//!
//! The entries are in sorted runs of at most `RUN`, and the runs in one list. Two binary searches
//! find an entry. Inserting or removing one moves at most the entries of a run, and seldom the list
//! of runs. Invariants: no run is empty, and all keys of a run are less than those of the next. The
//! control plane and the tables of large messages use these types; the path of ordinary packets
//! does not.

/// The most entries of a run.
const RUN: usize = 32;

/// Values by key, in the order of the keys.
#[derive(Clone, Debug)]
pub struct Map<K, V> {
    runs: Vec<Vec<(K, V)>>,
    len: usize,
}

/// Keys in their order.
#[derive(Clone, Debug)]
pub struct Set<K>(Map<K, ()>);

/// A run, and a place in it.
type At = (usize, usize);

impl<K, V> Map<K, V> {
    /// An empty map. It allocates nothing.
    pub const fn new() -> Self {
        let runs = Vec::new();
        Self { runs, len: 0 }
    }

    /// The number of entries.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.runs.iter().flatten().map(|(key, value)| (key, value))
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.runs.iter().flatten().map(|(key, _)| key)
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.runs.iter().flatten().map(|(_, value)| value)
    }

    /// All values, in the order of their keys.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.runs.iter_mut().flatten().map(|(_, value)| value)
    }

    /// The entry with the smallest key.
    pub fn first(&self) -> Option<&(K, V)> {
        self.runs.first()?.first()
    }

    /// Removes the entry with the smallest key.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take((0, 0)))
    }

    /// Removes an existing entry, and joins short runs, so that they do not become many.
    fn take(&mut self, (run, at): At) -> (K, V) {
        let entry = self.runs[run].remove(at);
        self.len -= 1;
        if self.runs[run].is_empty() {
            self.runs.remove(run);
        } else {
            self.join(run);
            self.join(run.saturating_sub(1));
        }
        entry
    }

    /// Joins this run and the next one, if both are short.
    fn join(&mut self, run: usize) {
        if let [one, next, ..] = &mut self.runs[run..]
            && one.len() + next.len() <= RUN / 2
        {
            one.append(next);
            self.runs.remove(run + 1);
        }
    }

    /// Puts an entry where it belongs.
    fn put(&mut self, (run, at): At, entry: (K, V)) {
        if self.runs.is_empty() {
            self.runs.push(Vec::new());
        }
        let entries = &mut self.runs[run];
        entries.insert(at, entry);
        self.len += 1;
        if entries.len() > RUN {
            // If keys only increase, the runs stay full.
            let kept = if at == RUN { RUN } else { RUN / 2 };
            let rest = entries.split_off(kept);
            self.runs.insert(run + 1, rest);
        }
    }
}

impl<K: Ord, V> Map<K, V> {
    /// The place of the key, or else the place where it belongs.
    fn find(&self, key: &K) -> Result<At, At> {
        let is_before = |run: &Vec<(K, V)>| run.last().is_some_and(|(last, _)| last < key);
        let run = self.runs.partition_point(is_before);
        // A key after all others belongs to the end of the last run.
        let run = run.min(self.runs.len().saturating_sub(1));
        let entries = self.runs.get(run).map_or(&[][..], Vec::as_slice);
        match entries.binary_search_by(|(other, _)| other.cmp(key)) {
            Ok(at) => Ok((run, at)),
            Err(at) => Err((run, at)),
        }
    }

    /// The value of this key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (run, at) = self.find(key).ok()?;
        Some(&self.runs[run][at].1)
    }

    /// The value of this key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (run, at) = self.find(key).ok()?;
        Some(&mut self.runs[run][at].1)
    }

    /// Whether this key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Gives the key this value; returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((run, at)) => Some(std::mem::replace(&mut self.runs[run][at].1, value)),
            Err(place) => {
                self.put(place, (key, value));
                None
            }
        }
    }

    /// The value of this key. If it has none, it gets `value`.
    pub fn get_or_insert(&mut self, key: K, value: V) -> &mut V
    where
        K: Copy,
    {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(place) => {
                self.put(place, (key, value));
                self.find(&key).unwrap_or_else(|place| place)
            }
        };
        &mut self.runs[at.0][at.1].1
    }

    /// Removes the key; returns the value that it had.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        Some(self.take(at).1)
    }

    /// The entries with this key or a greater one.
    pub fn from<'a>(&'a self, key: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (run, at) = self.find(key).unwrap_or_else(|place| place);
        let entries = self.runs.get(run..).unwrap_or_default().iter().flatten();
        entries.skip(at).map(|(key, value)| (key, value))
    }
}

impl<K> Set<K> {
    /// An empty set. It allocates nothing.
    pub const fn new() -> Self {
        Self(Map::new())
    }

    /// The number of keys.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.0.keys()
    }

    /// The smallest key.
    pub fn first(&self) -> Option<&K> {
        self.0.first().map(|(key, ())| key)
    }

    /// Removes the smallest key.
    pub fn pop_first(&mut self) -> Option<K> {
        self.0.pop_first().map(|(key, ())| key)
    }
}

impl<K: Ord> Set<K> {
    /// Whether the key is in the set.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Adds the key; true if it is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Removes the key; true if the set had it.
    pub fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    /// The keys that are at least this one.
    pub fn from<'a>(&'a self, key: &K) -> impl Iterator<Item = &'a K> + use<'a, K> {
        self.0.from(key).map(|(key, ())| key)
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
