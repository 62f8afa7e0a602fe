//! The operations in progress, in one table. A place becomes free when its operation has ended. An
//! operation that was issued ends only after its call, so a tag needs only the place.

use dunlin_core::Nanos;

use super::Token;

#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) token: Token,
    pub(super) count: u32,
    pub(super) deadline: Nanos,
    /// The upper four bytes that its request expects.
    pub(super) upper: u32,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    places: Vec<Option<Call>>,
    free: Vec<u32>,
}

impl Calls {
    pub(super) const fn live(&self) -> usize {
        self.places.len() - self.free.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, call: Call) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(call);
            return place;
        }
        self.places.push(Some(call));
        u32::try_from(self.places.len() - 1).expect("memory ends before that")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut Call {
        let call = self.places[place as usize].as_mut();
        call.expect("the place belongs to an operation")
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) -> Call {
        self.free.push(place);
        let call = self.places[place as usize].take();
        call.expect("the place belongs to an operation")
    }
}
