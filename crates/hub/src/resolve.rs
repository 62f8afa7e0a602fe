//! The sources of a channel's addresses: some addresses are fixed, others are looked up again and
//! again, by the system's resolver or by one of the program. Each look-up has a thread of its own,
//! and each source has at most one look-up at a time. So a look-up that hangs holds up neither a
//! call nor the look-up of another name or resolver. Called by `driver.rs` and `thread.rs`.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dunlin_nexus::Resolve;

#[cfg(test)]
mod tests;

/// A resolver of the program, or a name that the system's resolver looks up.
#[derive(Clone)]
pub(crate) enum Resolver {
    Own(Arc<dyn Resolve>),
    Name(Arc<str>),
}

/// All sources of a channel's addresses.
#[derive(Debug)]
pub(crate) struct Sources {
    fixed: Vec<String>,
    moving: Vec<Source>,
}

/// A source whose addresses change.
#[derive(Debug)]
struct Source {
    resolver: Resolver,
    found: Vec<String>,
    is_under_way: bool,
    /// The last look-up has found nothing.
    has_failed: bool,
}

/// A look-up that must begin: the index of its source, and the resolver.
pub(crate) struct LookUp {
    pub(crate) source: usize,
    pub(crate) resolver: Resolver,
}

impl Resolver {
    pub(crate) fn new(resolver: impl Resolve) -> Self {
        Self::Own(Arc::new(resolver))
    }

    pub(crate) fn of_name(name: &str) -> Self {
        Self::Name(name.into())
    }

    /// The name, if it is one.
    pub(crate) const fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Name(name) => Some(name),
            Self::Own(_) => None,
        }
    }

    /// The addresses; `None`: the look-up has found none. May take long.
    pub(crate) fn run(&self) -> Option<Vec<String>> {
        // A resolver is code of the program. If its panic ended this thread, the look-up would
        // never end, and the source would not be looked up again.
        let resolve = AssertUnwindSafe(|| match self {
            Self::Own(resolver) => resolver.resolve(),
            Self::Name(name) => String::from(&**name).resolve(),
        });
        let found = catch_unwind(resolve).ok()?.ok()?;
        let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
        (!found.is_empty()).then_some(found)
    }
}

impl Sources {
    pub(crate) fn new(fixed: Vec<String>, resolvers: Vec<Resolver>) -> Self {
        let source = |resolver| Source {
            resolver,
            found: Vec::new(),
            is_under_way: false,
            has_failed: false,
        };
        Self {
            fixed,
            moving: resolvers.into_iter().map(source).collect(),
        }
    }

    /// The addresses that are known now.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        let found = self.moving.iter().flat_map(|source| &source.found);
        self.fixed.iter().chain(found).map(String::as_str)
    }

    /// The names without an address, and whether their last look-up has failed.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, bool)> {
        let unknown = self.moving.iter().filter(|source| source.found.is_empty());
        unknown.filter_map(|source| Some((&**source.resolver.name()?, source.has_failed)))
    }

    /// Begins the look-ups of all sources that have no running one.
    pub(crate) fn begin(&mut self) -> Vec<LookUp> {
        let sources = self.moving.iter_mut().enumerate();
        let idle = sources.filter(|(_, source)| !source.is_under_way);
        idle.map(|(place, source)| {
            source.is_under_way = true;
            LookUp {
                source: place,
                resolver: source.resolver.clone(),
            }
        })
        .collect()
    }

    /// A look-up has ended. True if it has found addresses.
    pub(crate) fn on_end(&mut self, source: usize, found: Option<Vec<String>>) -> bool {
        let source = &mut self.moving[source];
        source.is_under_way = false;
        let has_found = found.is_some();
        source.has_failed = !has_found;
        source.found = found.unwrap_or_else(|| std::mem::take(&mut source.found));
        has_found
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}
