//! A queue of calls, the oldest first, from which any call can be taken: a list whose links are in
//! one vector, so that waiting allocates nothing.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
    is_in: bool,
}

const OUTSIDE: Links = Links {
    before: NONE,
    after: NONE,
    is_in: false,
};

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    links: Vec<Links>,
    first: u32,
    last: u32,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self {
            links: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }

    pub(crate) const fn first(&self) -> Option<u32> {
        index(self.first)
    }

    /// The next one after `at`.
    pub(crate) fn after(&self, at: u32) -> Option<u32> {
        let links = self.links.get(at as usize)?;
        index(links.after)
    }

    /// Puts `at` into the queue, before the calls at its end for which `is_later` returns true. If
    /// `at` waits already, it keeps its place.
    pub(crate) fn push(&mut self, at: u32, is_later: impl Fn(u32) -> bool) {
        let slot = at as usize;
        if slot >= self.links.len() {
            self.links.resize(slot + 1, OUTSIDE);
        }
        if self.links[slot].is_in {
            return;
        }
        let (mut before, mut after) = (self.last, NONE);
        while let Some(other) = index(before).filter(|other| is_later(*other)) {
            (before, after) = (self.links[other as usize].before, other);
        }
        self.links[slot] = Links {
            before,
            after,
            is_in: true,
        };
        match index(before) {
            Some(before) => self.links[before as usize].after = at,
            None => self.first = at,
        }
        match index(after) {
            Some(after) => self.links[after as usize].before = at,
            None => self.last = at,
        }
    }

    /// Takes `at` out, if it waits.
    pub(crate) fn remove(&mut self, at: u32) {
        let Some(links) = self.links.get_mut(at as usize).filter(|links| links.is_in) else {
            return;
        };
        let Links { before, after, .. } = *links;
        *links = OUTSIDE;
        match index(before) {
            Some(before) => self.links[before as usize].after = after,
            None => self.first = after,
        }
        match index(after) {
            Some(after) => self.links[after as usize].before = before,
            None => self.last = before,
        }
    }
}

const fn index(at: u32) -> Option<u32> {
    if at == NONE { None } else { Some(at) }
}

#[cfg(test)]
mod tests;
