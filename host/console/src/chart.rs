//! Bar charts as SVG. The tables beside them have the same numbers.

use askama::Template;

/// The drawing area, in units of the SVG.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 160.0;
/// The share of a slot that is empty, and the maximum width of a bar.
const GAP: f64 = 0.25;
const MAX_BAR_WIDTH: f64 = 120.0;

/// A stacked bar per label, for example per day.
#[derive(Template)]
#[template(path = "chart.html")]
pub struct Chart {
    title: String,
    /// The names of the parts, from the bottom.
    parts: &'static [&'static str],
    bars: Vec<Bar>,
    caption: String,
}

struct Bar {
    label: String,
    description: String,
    rectangles: Vec<Rectangle>,
    middle: f64,
}

struct Rectangle {
    class: &'static str,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Chart {
    /// Draws the numbers of each label, one for each part. The parts name their classes. In the
    /// caption, `{}` stands for the greatest sum.
    #[expect(clippy::cast_precision_loss, reason = "coordinates need no more than 52 bits")]
    pub fn new(
        title: &str,
        caption: &str,
        parts: &'static [&'static str],
        numbers: &[(String, Vec<u64>)],
    ) -> Chart {
        let sum = |(_, parts): &(String, Vec<u64>)| parts.iter().sum();
        let greatest: u64 = numbers.iter().map(sum).max().unwrap_or_default();
        let (scale, slot) = (HEIGHT / greatest.max(1) as f64, WIDTH / numbers.len().max(1) as f64);
        let bar = |(n, (label, values)): (usize, &(String, Vec<u64>))| {
            let width = (slot * (1.0 - GAP)).min(MAX_BAR_WIDTH);
            let middle = slot * (n as f64 + 0.5);
            let mut y = HEIGHT;
            let rectangles = parts.iter().zip(values).map(|(class, value)| {
                let height = *value as f64 * scale;
                y -= height;
                Rectangle { class, x: middle - width / 2.0, y, width, height }
            });
            let rectangles = rectangles.collect();
            let described = parts.iter().zip(values).map(|(part, value)| format!("{value} {part}"));
            let description = described.collect::<Vec<_>>().join(", ");
            Bar { label: label.clone(), description, rectangles, middle }
        };
        let bars = numbers.iter().enumerate().map(bar).collect();
        let caption = caption.replace("{}", &greatest.to_string());
        Chart { title: title.to_owned(), parts, bars, caption }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_stacked_and_scaled_to_the_greatest() {
        let numbers = [("1".to_owned(), vec![3, 1]), ("2".to_owned(), vec![0, 2])];
        let chart = Chart::new("Payments", "at most {} a day", &["succeeded", "failed"], &numbers);
        let of = |bar: usize, part: usize| {
            let Rectangle { y, height, .. } = chart.bars[bar].rectangles[part];
            (y, height)
        };
        assert_eq!((of(0, 0), of(0, 1)), ((40.0, 120.0), (0.0, 40.0)));
        assert_eq!((of(1, 0), of(1, 1)), ((160.0, 0.0), (80.0, 80.0)));
        assert_eq!(chart.bars[0].description, "3 succeeded, 1 failed");
        assert_eq!(chart.caption, "at most 4 a day");
        assert!(Chart::new("Payments", "", &["failed"], &[]).render().is_ok());
    }
}
