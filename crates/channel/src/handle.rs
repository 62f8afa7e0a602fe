//! Handles: an index, and the generation of the entry there. A handle that outlives its entry finds
//! nothing, because the next entry at that index has another generation.

/// A handle's two numbers. Only `slab.rs` makes handles.
pub(crate) trait Handle: Copy {
    fn from_parts(index: u32, generation: u32) -> Self;
    fn parts(self) -> (u32, u32);
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// A small number for the caller's own tables. No two handles of one kind have the same
            /// number at the same time.
            pub const fn index(self) -> usize {
                self.index as usize
            }
        }

        impl Handle for $name {
            fn from_parts(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            fn parts(self) -> (u32, u32) {
                (self.index, self.generation)
            }
        }
    )*};
}

handles! {
    /// An address of the channel, while it is listed or in use.
    AddressId;
    /// One connection to a server: a session, from the request for it until its end.
    LinkId;
    /// A call, from its beginning until its end has been taken.
    CallId;
    /// One request of a call, from the time when the driver gets it until the request has ended,
    /// even if its call has ended before.
    AttemptId;
}
