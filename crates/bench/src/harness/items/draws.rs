//! Draws of operations: which item, and whether to get or to set it.

use dunlin_core::Rng;
use serde::{Deserialize, Serialize};

/// The skew of a Zipf distribution, as in HERD §5.2.
const THETA: f64 = 0.99;

/// How often each item is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Popularity {
    /// All equally often.
    Uniform,
    /// By a Zipf distribution with skew 0.99.
    Zipf,
}

impl Popularity {
    /// Both, in the order of rows.
    pub(crate) const ALL: [Self; 2] = [Self::Uniform, Self::Zipf];

    /// Its name in rows.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }
}

/// A mix of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Mix {
    pub(crate) popularity: Popularity,
    /// Percentage of gets. The other operations are sets.
    pub(crate) gets: u8,
}

impl Mix {
    /// The percentages of gets in the rows: only gets, and HERD's two workloads (HERD §5.2).
    pub(crate) const GETS: [u8; 3] = [100, 95, 50];

    /// HERD's read-intensive workload without skew.
    pub(crate) const USUAL: Self = Self {
        popularity: Popularity::Uniform,
        gets: 95,
    };

    /// Only gets, of items that are equally popular.
    pub(crate) const ALL_GETS: Self = Self {
        gets: 100,
        ..Self::USUAL
    };

    /// Every popularity with every percentage.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let with = |popularity| Self::GETS.map(|gets| Self { popularity, gets });
        Popularity::ALL.into_iter().flat_map(with)
    }
}

/// An operation on one item.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Operation {
    pub(crate) number: u32,
    pub(crate) is_get: bool,
}

/// A generator of operations, which depend only on the seed.
#[derive(Debug)]
pub(crate) struct Draws {
    random: Rng,
    gets: u8,
    items: u32,
    zipf: Option<Zipf>,
}

impl Draws {
    /// Operations on items with numbers below `items`.
    pub(crate) fn new(mix: Mix, items: u32, seed: u64) -> Self {
        Self {
            random: Rng::new(seed),
            gets: mix.gets,
            items,
            zipf: (mix.popularity == Popularity::Zipf).then(|| Zipf::new(items)),
        }
    }

    /// The next operation.
    #[inline]
    pub(crate) fn draw(&mut self) -> Operation {
        let number = match &self.zipf {
            None => self.random.below(self.items),
            // The numbers of items with similar popularity are far apart.
            Some(zipf) => scatter(zipf.draw(&mut self.random), self.items),
        };
        Operation {
            number,
            is_get: self.random.below(100) < u32::from(self.gets),
        }
    }

    /// The rank of the next item by popularity: 0 is the most popular, unless all are alike.
    #[inline]
    pub(crate) fn rank(&mut self) -> u32 {
        match &self.zipf {
            None => self.random.below(self.items),
            Some(zipf) => zipf.draw(&mut self.random),
        }
    }

    /// A number below `end`, for purposes other than an operation.
    #[inline]
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    /// A uniform draw from 0 to 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        unit(&mut self.random)
    }
}

/// Mixes 64 bits without collisions.
#[inline]
pub(super) const fn mix(number: u64) -> u64 {
    Rng::new(number).next_u64()
}

/// The number, below `items`, of the item with this rank. Some ranks share an item.
#[inline]
fn scatter(rank: u32, items: u32) -> u32 {
    let wide = mix(rank.into()) >> 32;
    high(wide * u64::from(items))
}

/// The upper half of a product of two numbers of 32 bits.
#[inline]
fn high(product: u64) -> u32 {
    u32::try_from(product >> 32).expect("it has 32 bits")
}

/// A uniform draw from 0 to 1.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
const fn unit(random: &mut Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Ranks with a Zipf distribution, by the method of Gray et al. (SIGMOD 1994), as YCSB draws them.
#[derive(Debug)]
struct Zipf {
    items: u32,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(items: u32) -> Self {
        let zeta = zeta(items);
        let share = 2.0 / f64::from(items);
        Self {
            items,
            zeta,
            eta: (1.0 - share.powf(1.0 - THETA)) / (1.0 - zeta_of_two() / zeta),
        }
    }

    /// A rank: 0 is the most popular.
    fn draw(&self, random: &mut Rng) -> u32 {
        let unit = unit(random);
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < zeta_of_two() {
            return 1;
        }
        let base = self.eta.mul_add(unit, 1.0 - self.eta);
        let rank = f64::from(self.items) * base.powf(1.0 / (1.0 - THETA));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank is not negative, and cut to a whole number"
        )]
        let rank = rank as u32;
        rank.min(self.items - 1)
    }
}

fn weight(rank: u32) -> f64 {
    f64::from(rank).powf(-THETA)
}

fn zeta_of_two() -> f64 {
    1.0 + weight(2)
}

/// The sum of the weights of the ranks from 1 to `items`. From rank 1000 on, it is an integral with
/// the first correction of Euler and Maclaurin, whose error is below 10⁻⁷: a sum of millions of
/// powers would take a second.
fn zeta(items: u32) -> f64 {
    let head = items.min(1000);
    let sum: f64 = (1..=head).map(weight).sum();
    let area = |rank: u32| f64::from(rank).powf(1.0 - THETA) / (1.0 - THETA);
    sum + area(items) - area(head) + f64::midpoint(weight(items), -weight(head))
}

#[cfg(test)]
mod tests;
