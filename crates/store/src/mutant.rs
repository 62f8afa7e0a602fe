//! Planted bugs, which the comparison with the model must find. Without the feature `mutants` there
//! are none, and the compiler removes the checks for them.

/// A planted bug.
#[cfg_attr(
    not(feature = "mutants"),
    expect(unreachable_pub, reason = "only the feature shows it")
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Every get misses.
    Miss,
    /// A write stops in the middle of its value.
    HalfWrite,
    /// An item leaves the log, but its entry stays.
    LateEntry,
    /// A get continues with a long value that was overwritten meanwhile.
    MixedSlices,
    /// A compare-and-set does not compare.
    LostCompare,
    /// An item that has expired is returned.
    Expired,
    /// An item moves to another slot, and its entry does not follow.
    LostMove,
    /// An item is moved ahead in the log, and its entry does not follow.
    LostMoveAhead,
    /// A flush removes nothing.
    LostFlush,
    /// Two writes get the same version.
    OldVersion,
    /// A search takes the entry in the slot that was noted for a key, without checking that it is
    /// the key's entry.
    NotedSlot,
    /// A write in slices continues although other items have taken its room.
    LostRoom,
    /// An abandoned write in slices keeps its pages.
    LostPages,
    /// An append in slices goes on although its old value was overwritten meanwhile.
    MixedJoin,
}

#[cfg(all(test, feature = "mutants"))]
impl Mutant {
    pub(crate) const ALL: [Self; 14] = [
        Self::Miss,
        Self::HalfWrite,
        Self::LateEntry,
        Self::MixedSlices,
        Self::LostCompare,
        Self::Expired,
        Self::LostMove,
        Self::LostMoveAhead,
        Self::LostFlush,
        Self::OldVersion,
        Self::NotedSlot,
        Self::LostRoom,
        Self::LostPages,
        Self::MixedJoin,
    ];
}
