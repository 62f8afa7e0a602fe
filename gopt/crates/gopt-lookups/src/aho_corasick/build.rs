//! Makes automata from patterns: first a trie, then, breadth first, the transitions that the trie
//! lacks (Aho and Corasick, CACM 1975). Called once, by [`Automata::new`].

use std::collections::VecDeque;
use std::io;

use super::{Automata, BYTES, ENDS};
use crate::huge::Huge;

/// A state that is being built. Transition 0 means none, because nothing in a trie leads back to
/// the start.
struct State {
    next: Box<[u32; BYTES]>,
    /// Patterns that end here.
    patterns: Vec<u32>,
}

impl State {
    fn new() -> Self {
        Self {
            next: Box::new([0; BYTES]),
            patterns: Vec::new(),
        }
    }
}

pub(super) fn build<P: AsRef<[u8]>>(sets: &[Vec<P>]) -> io::Result<Automata> {
    let mut starts = Vec::with_capacity(sets.len());
    let mut states = Vec::new();
    for set in sets {
        starts.push(number(states.len())?);
        states.extend(automaton(set, states.len())?);
    }
    let mut next = Huge::zeroed(states.len() * BYTES)?;
    let mut ends = vec![0];
    let mut patterns = Vec::new();
    for (state, row) in states.iter().zip(next.chunks_exact_mut(BYTES)) {
        for (entry, &to) in row.iter_mut().zip(state.next.iter()) {
            let is_end = !states[to as usize].patterns.is_empty();
            *entry = to | if is_end { ENDS } else { 0 };
        }
        patterns.extend_from_slice(&state.patterns);
        ends.push(number(patterns.len())?);
    }
    Ok(Automata {
        next,
        starts,
        ends,
        patterns,
    })
}

/// The states of one automaton, numbered from `first` on.
fn automaton<P: AsRef<[u8]>>(set: &[P], first: usize) -> io::Result<Vec<State>> {
    let mut states = trie(set)?;
    complete(&mut states);
    let first = number(first)?;
    number(first as usize + states.len())?;
    for to in states.iter_mut().flat_map(|state| state.next.iter_mut()) {
        *to += first;
    }
    Ok(states)
}

fn trie<P: AsRef<[u8]>>(set: &[P]) -> io::Result<Vec<State>> {
    let mut states = vec![State::new()];
    for (pattern, bytes) in set.iter().enumerate() {
        if bytes.as_ref().is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut at = 0;
        for &byte in bytes.as_ref() {
            let byte = usize::from(byte);
            if states[at].next[byte] == 0 {
                states[at].next[byte] = number(states.len())?;
                states.push(State::new());
            }
            at = states[at].next[byte] as usize;
        }
        states[at].patterns.push(number(pattern)?);
    }
    Ok(states)
}

/// Gives every state all transitions and the patterns of its suffixes, breadth first. A state takes
/// them from the state of its longest proper suffix, which is less deep and so complete already.
fn complete(states: &mut [State]) {
    let mut suffix = vec![0_u32; states.len()];
    let mut queue: VecDeque<u32> = states[0]
        .next
        .iter()
        .copied()
        .filter(|&to| to != 0)
        .collect();
    while let Some(at) = queue.pop_front() {
        let fallback = suffix[at as usize] as usize;
        let inherited = states[fallback].patterns.clone();
        states[at as usize].patterns.extend(inherited);
        for byte in 0..BYTES {
            let other = states[fallback].next[byte];
            let to = &mut states[at as usize].next[byte];
            if *to == 0 {
                *to = other;
            } else {
                suffix[*to as usize] = other;
                queue.push_back(*to);
            }
        }
    }
}

/// The number of a state; it leaves the flag bit of a transition free.
fn number(count: usize) -> io::Result<u32> {
    let number = u32::try_from(count)
        .ok()
        .filter(|number| number & ENDS == 0);
    number.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
