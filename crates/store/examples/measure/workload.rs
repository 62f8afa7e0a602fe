//! Keys and popularities.

/// `SplitMix64` (Steele et al., 2014).
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// An even draw below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).expect("the upper half")
    }

    /// An even draw from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.next() >> 11) as f64 / STEPS
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The 16 bytes of key `number`.
pub(crate) fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key[8..].copy_from_slice(&mix(number).to_le_bytes());
    key
}

/// Ranks with a Zipf distribution, by the method of Gray et al. (SIGMOD 1994), as YCSB draws them.
#[derive(Debug)]
pub(crate) struct Zipf {
    items: f64,
    theta: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    pub(crate) fn new(items: u64, theta: f64) -> Self {
        let zeta_of =
            |items: u64| -> f64 { (1..=items).map(|rank| (rank as f64).powf(-theta)).sum() };
        let zeta = zeta_of(items);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - zeta_of(2) / zeta);
        Self {
            items: items as f64,
            theta,
            zeta,
            eta,
        }
    }

    /// A rank: 0 is the most popular.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let base = self.eta.mul_add(unit, 1.0 - self.eta);
        let rank = self.items * base.powf(1.0 / (1.0 - self.theta));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank is not negative, and cut to a whole number"
        )]
        let rank = rank as u64;
        rank
    }
}
