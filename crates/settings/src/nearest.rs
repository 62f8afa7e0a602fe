//! The name that a user probably meant: the one with the fewest letters added, left out, changed,
//! or swapped with their neighbour.

/// The candidate nearest to `wrong`; of several, the first. Upper and lower case count as equal.
pub(super) fn nearest<'a>(
    wrong: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    candidates.min_by_key(|candidate| distance(&wrong, &candidate.to_lowercase()))
}

/// Edits between two words; a swap of neighbours counts as one.
pub(super) fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    // Three rows of the table of edit distances between prefixes of both words.
    let mut before = vec![0; to.len() + 1];
    let mut last = (0..=to.len()).collect::<Vec<_>>();
    for i in 1..=from.len() {
        let mut row = vec![i; to.len() + 1];
        for j in 1..=to.len() {
            let changed = usize::from(from[i - 1] != to[j - 1]);
            let mut least = (last[j - 1] + changed).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row[j] = least;
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}
