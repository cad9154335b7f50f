//! Layout of the plots: converts values to positions in drawing units. The template draws them.

use std::iter;

use super::report::Figure;

/// Margins between the axes and the edges of a drawing.
pub const LEFT: f64 = 52.0;
pub const RIGHT: f64 = 30.0;
pub const TOP: f64 = 10.0;
pub const BOTTOM: f64 = 40.0;
/// Minimum distance between the centres of two labels.
const MIN_LABEL_DISTANCE: f64 = 17.0;
/// More ticks would overlap.
const MAX_TICKS: usize = 7;

/// A grid line and its label.
pub struct Tick {
    pub at: f64,
    pub label: String,
}

/// A logarithmic scale.
pub struct LogScale {
    min: f64,
    max: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// Creates a scale of all values between two positions, with a small margin.
    pub fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> LogScale {
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for value in values.filter(|value| *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        let least = least.min(most).max(1e-3); // resolution of a clock
        LogScale { min: least / 1.15, max: most.max(least) * 1.15, from, to }
    }

    pub fn at(&self, value: impl Into<f64>) -> f64 {
        let value = value.into().clamp(self.min, self.max);
        let share = (value / self.min).ln() / (self.max / self.min).ln();
        round(self.from + (self.to - self.from) * share)
    }

    /// Returns the multiples of 1, 2 and 5, or powers of ten if these are too many.
    pub fn ticks(&self) -> Vec<Tick> {
        let decades = self.min.log10().floor() as i32..=self.max.log10().ceil() as i32;
        let of = |steps: &[f64]| -> Vec<f64> {
            let powers = decades.clone().map(|decade| 10_f64.powi(decade));
            let values = powers.flat_map(|power| steps.iter().map(move |step| step * power));
            values.filter(|value| (self.min..=self.max).contains(value)).collect()
        };
        let mut values = of(&[1.0, 2.0, 5.0]);
        if values.len() > MAX_TICKS {
            values = of(&[1.0]);
        }
        let tick = |value| Tick { at: self.at(value), label: tick_label(value) };
        values.into_iter().map(tick).collect()
    }
}

/// Formats a label: `0.5`, `20`, `10 000`.
fn tick_label(value: f64) -> String {
    if value < 1.0 {
        return format!("{value:.3}").trim_end_matches('0').to_owned();
    }
    if value < 10_000.0 { format!("{value:.0}") } else { format!("{:.0} 000", value / 1_000.0) }
}

/// Rounds to a tenth of a unit.
pub fn round(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

/// Returns an SVG path through all points.
pub fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let commands = iter::once('M').chain(iter::repeat('L'));
    commands.zip(points).map(|(command, (x, y))| format!("{command}{x} {y}")).collect()
}

/// Returns positions of labels near `wanted`, moved apart so that none overlap.
pub fn spread_labels(wanted: &[f64], max_position: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*b].total_cmp(&wanted[*a]));
    let mut places = wanted.to_vec();
    let mut free = max_position;
    for n in order {
        places[n] = round(places[n].min(free));
        free = places[n] - MIN_LABEL_DISTANCE;
    }
    places
}

pub struct Bars {
    pub title: &'static str,
    /// The better direction, for example `lower is better`.
    pub better: &'static str,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub of: usize,
    pub label: Figure,
    /// Percentage of the largest value.
    pub length: f64,
    /// Start and length of the range of measurements, as percentages of the largest value.
    pub whisker: Option<(f64, f64)>,
}

/// A measured value, and the range of repeated measurements.
pub type MeasuredValue = (f64, Option<(f64, f64)>);

impl Bars {
    /// Each value has the index of its component.
    pub fn new(
        title: &'static str,
        better: &'static str,
        values: impl Iterator<Item = (usize, MeasuredValue)> + Clone,
    ) -> Bars {
        let most = values.clone().map(|(_, (value, range))| range.map_or(value, |(_, most)| most));
        let most = most.fold(f64::MIN_POSITIVE, f64::max);
        let share = |value: f64| round(value / most * 100.0);
        let bars = values.map(|(of, (value, range))| Bar {
            of,
            label: Figure(value),
            length: share(value),
            whisker: range.map(|(least, most)| (share(least), share(most - least))),
        });
        Bars { title, better, bars: bars.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_distances() {
        let log = LogScale::around([1.0, 100.0].into_iter(), 0.0, 100.0);
        let places = [1.0, 10.0, 100.0].map(|value| log.at(value));
        assert!((places[1] - places[0] - (places[2] - places[1])).abs() < 1e-9, "{places:?}");
        let labels: Vec<String> = log.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["1", "2", "5", "10", "20", "50", "100"]);
        let wide = LogScale::around([0.1, 90_000.0].into_iter(), 0.0, 100.0);
        let labels: Vec<String> = wide.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0.1", "1", "10", "100", "1000", "10 000", "100 000"]);
    }

    #[test]
    fn a_value_of_zero_is_drawn() {
        let log = LogScale::around([0.0].into_iter(), 10.0, 20.0);
        assert!((10.0..=20.0).contains(&log.at(0.0)));
    }

    #[test]
    fn labels_do_not_touch() {
        assert_eq!(spread_labels(&[100.0, 50.0, 99.0], 200.0), [100.0, 50.0, 83.0]);
        assert_eq!(spread_labels(&[100.0, 100.0], 90.0), [90.0, 73.0]);
    }

    #[test]
    fn the_largest_value_is_a_hundred_percent() {
        let bars =
            Bars::new("", "", [(50.0, None), (90.0, Some((80.0, 100.0)))].into_iter().enumerate());
        let lengths: Vec<f64> = bars.bars.iter().map(|bar| bar.length).collect();
        assert_eq!((lengths, bars.bars[1].whisker), (vec![50.0, 90.0], Some((80.0, 20.0))));
    }
}
