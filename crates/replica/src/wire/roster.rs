//! The members of a cluster as its log has made them: numbers, addresses, and roles in elections.
//! Statuses, snapshots and requests to processes that join contain this roster.

use raft::eraftpb::ConfState;

use super::cursor::{Cursor, put_count, put_counted, put_words};
use super::format::{MAX_ADDRESS, Malformed, VERSION};
use super::members::{Member, Members};

/// The most members of a cluster during a change, including the old and the new ones.
pub(crate) const MAX_SEATS: usize = 16;

/// The part of a member in elections.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Part {
    /// It votes.
    pub is_voter: bool,
    /// It votes until the change of members is complete.
    pub is_outgoing: bool,
    /// It gets the log, but does not vote.
    pub is_learner: bool,
}

/// The members of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roster {
    cluster: u64,
    seats: Vec<(Member, Part)>,
}

impl Roster {
    /// The members of a new cluster.
    #[must_use]
    pub fn first(members: &Members) -> Self {
        let part = Part {
            is_voter: true,
            ..Part::default()
        };
        Self {
            cluster: members.cluster(),
            seats: members.iter().map(|it| (it.clone(), part)).collect(),
        }
    }

    /// The first roster of a process that joins. It has the members without parts; the leader tells
    /// the process the parts.
    #[must_use]
    pub fn for_joining(&self, joiner: Member) -> Self {
        let others = self.seats.iter().filter(|it| it.0.id != joiner.id);
        let all = others.map(|it| it.0.clone()).chain([joiner.clone()]);
        let mut seats: Vec<_> = all.map(|it| (it, Part::default())).collect();
        seats.sort();
        Self {
            cluster: self.cluster,
            seats,
        }
    }

    /// The roster of items that were read from a disk before their cluster is known. No member
    /// votes.
    #[cfg(feature = "disk")]
    pub(crate) fn unknown(id: u64) -> Self {
        let member = Member {
            id,
            address: "?".to_owned(),
        };
        Self {
            cluster: 0,
            seats: vec![(member, Part::default())],
        }
    }

    /// The name of the cluster.
    #[must_use]
    pub const fn cluster(&self) -> u64 {
        self.cluster
    }

    /// The members.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.seats.iter().map(|it| &it.0)
    }

    /// The member with a number.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&Member> {
        self.iter().find(|member| member.id == id)
    }

    /// The part of the member with a number.
    #[must_use]
    pub fn part(&self, id: u64) -> Option<Part> {
        let seat = self.seats.iter().find(|it| it.0.id == id)?;
        Some(seat.1)
    }

    /// Whether the members are changing.
    #[must_use]
    pub fn is_joint(&self) -> bool {
        self.seats.iter().any(|it| it.1.is_outgoing)
    }

    /// Whether all members vote and no change is under way.
    pub(crate) fn is_settled(&self) -> bool {
        let votes = |part: &Part| part.is_voter && !part.is_outgoing && !part.is_learner;
        self.seats.iter().all(|it| votes(&it.1))
    }

    /// Whether any member votes. A process that joins knows of no voters at first.
    #[must_use]
    pub fn has_voters(&self) -> bool {
        self.seats.iter().any(|it| it.1.is_voter)
    }

    /// Whether a cluster can have these members: at least one votes, each has a part, and no
    /// learner votes. Raft would end the process for any other roster.
    pub(crate) fn is_possible(&self) -> bool {
        let has_one = |part: &Part| part.is_learner != (part.is_voter || part.is_outgoing);
        self.has_voters() && self.seats.iter().all(|it| has_one(&it.1))
    }

    /// Takes the address of a member that joins.
    pub(crate) fn add(&mut self, member: Member) {
        self.seats.retain(|it| it.0.id != member.id);
        self.seats.push((member, Part::default()));
        self.seats.sort();
    }

    /// Takes the parts that Raft has given to the members. Members without a part leave.
    pub(crate) fn on_change(&mut self, conf: &ConfState) {
        for (member, part) in &mut self.seats {
            *part = Part {
                is_voter: conf.voters.contains(&member.id),
                is_outgoing: conf.voters_outgoing.contains(&member.id),
                is_learner: conf.learners.contains(&member.id),
            };
        }
        self.seats.retain(|it| it.1 != Part::default());
    }

    /// Converts the parts for Raft.
    pub(crate) fn conf(&self) -> ConfState {
        let with = |has: fn(&Part) -> bool| -> Vec<u64> {
            let seats = self.seats.iter().filter(|it| has(&it.1));
            seats.map(|it| it.0.id).collect()
        };
        ConfState {
            voters: with(|it| it.is_voter),
            voters_outgoing: with(|it| it.is_outgoing),
            learners: with(|it| it.is_learner),
            ..ConfState::default()
        }
    }

    /// The bytes of a request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        self.put(&mut bytes);
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::of_message(bytes)?;
        let roster = Self::take(&mut cursor)?;
        cursor.end()?;
        Ok(roster)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_words(out, &[self.cluster]);
        put_count(out, self.seats.len());
        for (member, part) in &self.seats {
            put_words(out, &[member.id]);
            let parts = [part.is_voter, part.is_outgoing, part.is_learner];
            out.extend(parts.map(u8::from));
            put_counted(out, member.address.as_bytes());
        }
    }

    pub(crate) fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let cluster = cursor.u64()?;
        let count = cursor.count(15)?;
        if !(1..=MAX_SEATS).contains(&count) {
            return Err(Malformed);
        }
        let mut seats = Vec::with_capacity(count);
        for _ in 0..count {
            let id = cursor.u64()?;
            let part = Part {
                is_voter: cursor.flag()?,
                is_outgoing: cursor.flag()?,
                is_learner: cursor.flag()?,
            };
            seats.push((Member::take(id, cursor)?, part));
        }
        let is_sorted = seats.windows(2).all(|pair| pair[0].0.id < pair[1].0.id);
        match is_sorted && seats[0].0.id > 0 {
            true => Ok(Self { cluster, seats }),
            false => Err(Malformed),
        }
    }
}

impl Member {
    /// Reads the address of a member.
    pub(super) fn take(id: u64, cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let address = std::str::from_utf8(cursor.counted()?).map_err(|_| Malformed)?;
        match (1..=MAX_ADDRESS).contains(&address.len()) {
            true => Ok(Self {
                id,
                address: address.to_owned(),
            }),
            false => Err(Malformed),
        }
    }
}
