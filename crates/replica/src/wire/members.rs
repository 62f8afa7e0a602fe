//! The members of a cluster, as a bootstrap names them to each replica.

use super::cursor::{Cursor, put_count, put_counted, put_words};
use super::format::{MAX_ADDRESS, MAX_MEMBERS, Malformed, VERSION};

/// A replica: the number that its process drew when it started, and the address at which the others
/// reach it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member {
    /// Its number, which is not 0.
    pub id: u64,
    /// Its address, for the owner of the endpoint to resolve.
    pub address: String,
}

/// The replicas of a cluster, in the order of their numbers.
///
/// ```
/// use dunlin_replica::{Member, Members};
///
/// let member = |id| Member { id, address: format!("host-{id}:31850") };
/// let members = Members::new([3, 1, 2].map(member)).unwrap();
/// assert_eq!(members.iter().map(|it| it.id).collect::<Vec<_>>(), [1, 2, 3]);
/// assert!(Members::new([1, 2].map(member)).is_err(), "half of two is no majority");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    all: Vec<Member>,
    items: u64,
}

/// The reason why replicas do not form a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MembersError {
    /// There are no replicas, an even number, or more than [`MAX_MEMBERS`].
    Count(usize),
    /// Two replicas have the same number, or one has the number 0.
    Id(u64),
    /// Two replicas have the same address, or one has no address or one longer than
    /// [`MAX_ADDRESS`].
    Address,
}

impl Members {
    /// Makes a cluster of some members.
    ///
    /// # Errors
    /// [`MembersError`].
    pub fn new(members: impl IntoIterator<Item = Member>) -> Result<Self, MembersError> {
        let mut members: Vec<Member> = members.into_iter().collect();
        members.sort();
        let count = members.len();
        if count.is_multiple_of(2) || count > MAX_MEMBERS {
            return Err(MembersError::Count(count));
        }
        let twice = members.windows(2).find(|pair| pair[0].id == pair[1].id);
        if let Some(pair) = twice {
            return Err(MembersError::Id(pair[0].id));
        }
        if members[0].id == 0 {
            return Err(MembersError::Id(0));
        }
        let mut addresses: Vec<&str> = members.iter().map(|it| it.address.as_str()).collect();
        addresses.sort_unstable();
        let has_room = |it: &&str| (1..=MAX_ADDRESS).contains(&it.len());
        if addresses.windows(2).any(|pair| pair[0] == pair[1]) || !addresses.iter().all(has_room) {
            return Err(MembersError::Address);
        }
        Ok(Self {
            all: members,
            items: 0,
        })
    }

    /// Sets the [digest](crate::Restored::digest) of the restored items with which the cluster
    /// begins.
    #[must_use]
    pub fn begin_with(mut self, items: u64) -> Self {
        self.items = items;
        self
    }

    /// The digest of the items with which the cluster begins; 0: there are none.
    #[must_use]
    pub const fn items(&self) -> u64 {
        self.items
    }

    /// The members.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.all.iter()
    }

    /// The member with a number.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Member> {
        self.all.iter().find(|member| member.id == id)
    }

    /// The name of the cluster. It is computed from the members' numbers, which their processes
    /// drew at random, so a repeated bootstrap makes the same cluster.
    #[must_use]
    pub fn cluster(&self) -> u64 {
        let mix = |name: u64, id: u64| dunlin_core::Rng::new(name ^ id).next_u64();
        self.all.iter().map(|member| member.id).fold(0, mix)
    }

    /// The bytes of the request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        self.put(&mut bytes);
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`], also for members that do not form a cluster.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::of_message(bytes)?;
        let members = Self::take(&mut cursor)?;
        cursor.end()?;
        Ok(members)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.all.len());
        for member in &self.all {
            put_words(out, &[member.id]);
            put_counted(out, member.address.as_bytes());
        }
        put_words(out, &[self.items]);
    }

    pub(super) fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let count = cursor.count(12)?;
        if count > MAX_MEMBERS {
            return Err(Malformed);
        }
        let mut members = Vec::with_capacity(count);
        for _ in 0..count {
            let id = cursor.u64()?;
            let address = std::str::from_utf8(cursor.counted()?).map_err(|_| Malformed)?;
            members.push(Member {
                id,
                address: address.to_owned(),
            });
        }
        let sorted = members.is_sorted();
        let members = Self::new(members).map_err(|_| Malformed)?;
        let members = members.begin_with(cursor.u64()?);
        sorted.then_some(members).ok_or(Malformed)
    }
}

impl std::fmt::Display for MembersError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(
                f,
                "{count} replicas do not form a cluster: it takes one, three, five or seven"
            ),
            Self::Id(0) => f.write_str("a replica has the number 0"),
            Self::Id(id) => write!(f, "two replicas have the number {id:016x}"),
            Self::Address => f.write_str("two replicas have the same address, or one has none"),
        }
    }
}

impl std::error::Error for MembersError {}
