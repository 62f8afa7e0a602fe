//! The free pages, in a list through the pages themselves.

use super::LINK;
use crate::memory::{Region, STEP};

/// The mark in the first word of a free page.
const FREE: u64 = 1 << 63;

#[derive(Debug)]
pub(super) struct Pages {
    /// Pages below this one are in use or in the list.
    top: u32,
    /// The free page that is taken next.
    free: Option<u32>,
    free_pages: usize,
}

impl Pages {
    pub(super) fn new() -> Self {
        Self {
            top: 0,
            free: None,
            free_pages: 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.top as usize - self.free_pages
    }

    pub(super) fn top(&self) -> usize {
        self.top as usize * STEP
    }

    /// Takes a page below `limit`.
    pub(super) fn take(&mut self, memory: &mut Region, limit: usize) -> Option<u32> {
        if let Some(page) = self.free {
            self.unlink(memory, page);
            return Some(page);
        }
        if self.top() + STEP > limit {
            return None;
        }
        self.top += 1;
        Some(self.top - 1)
    }

    /// Frees a page. If it was the topmost, it and the free pages directly below it go to the
    /// index.
    pub(super) fn give(&mut self, memory: &mut Region, page: u32) {
        let next = self.free.map_or(0, |next| u64::from(next) + 1);
        memory.set_word(start(page), FREE | next);
        memory.set_word(start(page) + LINK, 0);
        if let Some(next) = self.free {
            memory.set_word(start(next) + LINK, u64::from(page) + 1);
        }
        self.free = Some(page);
        self.free_pages += 1;
        while let Some(topmost) = self.top.checked_sub(1) {
            if memory.word(start(topmost)) & FREE == 0 {
                break;
            }
            self.unlink(memory, topmost);
            self.top = topmost;
        }
    }

    /// The page that a used page links to.
    pub(super) fn linked(&self, memory: &Region, page: u32) -> Option<u32> {
        number(memory.word(start(page)))
    }

    /// Links a used page to another one.
    pub(super) fn link(&self, memory: &mut Region, page: u32, to: Option<u32>) {
        memory.set_word(start(page), to.map_or(0, |to| u64::from(to) + 1));
    }

    /// Takes a free page out of the list.
    fn unlink(&mut self, memory: &mut Region, page: u32) {
        let next = number(memory.word(start(page)) & !FREE);
        let before = number(memory.word(start(page) + LINK));
        if let Some(next) = next {
            let link = before.map_or(0, |before| u64::from(before) + 1);
            memory.set_word(start(next) + LINK, link);
        }
        match before {
            Some(before) => {
                let link = next.map_or(0, |next| u64::from(next) + 1);
                memory.set_word(start(before), FREE | link);
            }
            None => self.free = next,
        }
        memory.set_word(start(page), 0);
        self.free_pages -= 1;
    }
}

fn start(page: u32) -> usize {
    page as usize * STEP
}

/// The page that a link names, if it names one.
fn number(link: u64) -> Option<u32> {
    let page = u32::try_from(link).expect("a region has fewer than 2^32 pages");
    page.checked_sub(1)
}
