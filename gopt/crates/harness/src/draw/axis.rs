//! An axis: its values, their places, and the labels next to it.

use crate::figure;

/// How values become places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal factors have equal distances. Values that are not positive are left out.
    Log,
    /// From 0 on.
    Linear,
    /// Each value that occurs has its place, all at the same distance.
    Each,
}

/// The quantity of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The axis's label.
    pub label: String,
    /// The unit as in rows: `ns`, `1/s`, and so on; `""` for plain numbers.
    pub unit: &'static str,
    /// How values become places.
    pub scale: Scale,
}

impl Axis {
    /// An axis with this text, unit and scale.
    pub fn new(label: impl Into<String>, unit: &'static str, scale: Scale) -> Self {
        let label = label.into();
        Self { label, unit, scale }
    }

    /// Makes the axis of these values, from the place `near` to the place `far`.
    pub(super) fn over(
        &self,
        values: impl Iterator<Item = f64>,
        (near, far): (f64, f64),
    ) -> Placed {
        let usable = |value: &f64| value.is_finite() && (self.scale != Scale::Log || *value > 0.0);
        let mut values: Vec<f64> = values.filter(usable).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = match self.scale {
            Scale::Log => (
                values.first().copied().unwrap_or(1.0).ln() - 0.25,
                values.last().copied().unwrap_or(10.0).ln() + 0.25,
            ),
            Scale::Linear => (
                values.first().copied().unwrap_or(0.0).min(0.0),
                values.last().copied().unwrap_or(1.0).max(1e-9) * 1.08,
            ),
            Scale::Each => (-0.4, float(values.len().max(1)) - 0.6),
        };
        Placed {
            scale: self.scale,
            unit: self.unit,
            values,
            range: (low, high),
            places: (near, far),
        }
    }
}

/// An axis that knows its values and its places.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    scale: Scale,
    unit: &'static str,
    /// Sorted, each once.
    values: Vec<f64>,
    /// The range of logarithms, values or indices, as the scale requires.
    range: (f64, f64),
    places: (f64, f64),
}

impl Placed {
    /// The place of a value; `None` if this axis has no place for it.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let inner = match self.scale {
            Scale::Log => (value > 0.0).then(|| value.ln())?,
            Scale::Linear => value,
            Scale::Each => {
                let same = |it: &f64| it.total_cmp(&value);
                float(self.values.binary_search_by(same).ok()?)
            }
        };
        let ((low, high), (near, far)) = (self.range, self.places);
        let share = (inner - low) / (high - low);
        share.is_finite().then_some(near + share * (far - near))
    }

    /// Places and labels of the values that occur. Labels for which there is no room are left out.
    pub(super) fn own_ticks(&self, room: impl Fn(&str) -> f64) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        let mut taken = f64::MIN;
        for &value in &self.values {
            let label = figure::short(value, self.unit);
            let Some(at) = self.at(value) else { continue };
            let half = room(&label) / 2.0 + 4.0;
            if at - half >= taken {
                taken = at + half;
                ticks.push((at, label));
            }
        }
        ticks
    }

    /// Places and labels of round values.
    pub(super) fn round_ticks(&self) -> Vec<(f64, String)> {
        let (low, high) = self.range;
        let values = match self.scale {
            Scale::Log => log_ticks(low.exp(), high.exp()),
            Scale::Linear => linear_ticks(low, high),
            Scale::Each => self.values.clone(),
        };
        let tick = |value: f64| Some((self.at(value)?, figure::short(value, self.unit)));
        values.into_iter().filter_map(tick).collect()
    }
}

/// Powers of ten, and multiples of them where there are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let leading: &[f64] = match decades {
        it if it < 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
        it if it < 2.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    // If there are more than eight decades, every second one is enough.
    let step = if decades > 8.0 { 2 } else { 1 };
    let exponents = (-24..=24).filter(|it| it % step == 0);
    let all = exponents.flat_map(|it| leading.iter().map(move |lead| lead * 10_f64.powi(it)));
    all.filter(|it| (low..=high).contains(it)).collect()
}

/// Three to seven multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let lead = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|lead| lead * power >= rough);
    let step = lead.unwrap_or(10.0) * power;
    let first = (low / step).ceil();
    (0..12)
        .map(|index| (first + f64::from(index)) * step)
        .take_while(|value| *value <= high)
        .collect()
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a chart has few values"))
}
