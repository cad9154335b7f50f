//! A plot of latency percentiles by rate, as SVG.

use std::fmt::Write;

use crate::report::{Percentiles, Phase, Report};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
/// Margins for the labels.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 60.0;
/// Of the key of the colors.
const KEY: f64 = WIDTH - RIGHT + 12.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 45.0;
const MAX_RATE_TICKS: f64 = 6.0;

struct Line {
    name: &'static str,
    color: &'static str,
    value: fn(&Percentiles) -> f64,
}

const LINES: [Line; 3] = [
    Line { name: "p50", color: "#2a7f4f", value: |latency| latency.p50_ms },
    Line { name: "p99", color: "#b8860b", value: |latency| latency.p99_ms },
    Line { name: "p99.9", color: "#a83232", value: |latency| latency.p999_ms },
];

/// Positions of values: the rate is linear, the latency logarithmic.
struct Scale {
    max_rate: f64,
    /// Exponents of ten.
    decades: [f64; 2],
}

impl Scale {
    fn new(phases: &[&Phase]) -> Scale {
        let values = || {
            let all =
                phases.iter().flat_map(|phase| LINES.map(|line| (line.value)(&phase.scheduled)));
            all.filter(|ms| *ms > 0.0)
        };
        let (least, most) = (values().fold(1.0, f64::min), values().fold(1.0, f64::max));
        let (first, last) = (least.log10().floor(), most.log10().ceil());
        Scale {
            max_rate: phases.iter().map(|phase| phase.rate_per_s).fold(1.0, f64::max),
            decades: [first, last.max(first + 1.0)],
        }
    }

    fn x(&self, rate: f64) -> f64 {
        LEFT + rate / self.max_rate * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, ms: f64) -> f64 {
        let [first, last] = self.decades;
        let share = (ms.max(1e-3).log10() - first) / (last - first);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }
}

impl Report {
    /// Returns the plot of all measurements, by rate.
    #[must_use]
    pub fn plot(&self) -> String {
        let mut phases: Vec<&Phase> = self.phases.iter().collect();
        phases.sort_by(|one, other| one.rate_per_s.total_cmp(&other.rate_per_s));
        let scale = Scale::new(&phases);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        write_text(&mut svg, middle, 18.0, "middle", "Latency from the intended start, ms");
        write_text(&mut svg, middle, HEIGHT - 8.0, "middle", "Operations per second");
        write_grid(&mut svg, &scale);
        for (n, Line { name, color, value }) in LINES.iter().enumerate() {
            let points: Vec<(f64, f64)> = phases
                .iter()
                .map(|phase| (scale.x(phase.rate_per_s), scale.y(value(&phase.scheduled))))
                .collect();
            let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let path = path.join(" ");
            let _ = writeln!(
                svg,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>"
            );
            for (x, y) in &points {
                let _ =
                    writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
            }
            let y = TOP + 20.0 * n as f64 + 4.0;
            let _ = writeln!(svg, "<circle cx=\"{KEY}\" cy=\"{y}\" r=\"4\" fill=\"{color}\"/>");
            write_text(&mut svg, KEY + 8.0, y + 4.0, "start", name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn write_grid(svg: &mut String, scale: &Scale) {
    let [first, last] = scale.decades;
    let mut decade = first;
    while decade <= last {
        let ms = 10_f64.powf(decade);
        let y = scale.y(ms);
        write_line(svg, [LEFT, y, WIDTH - RIGHT, y]);
        write_text(svg, LEFT - 8.0, y + 4.0, "end", &format!("{ms}"));
        decade += 1.0;
    }
    let step = tick_step(scale.max_rate);
    let mut rate = 0.0;
    while rate <= scale.max_rate {
        let x = scale.x(rate);
        write_line(svg, [x, TOP, x, HEIGHT - BOTTOM]);
        write_text(svg, x, HEIGHT - BOTTOM + 16.0, "middle", &format!("{rate}"));
        rate += step;
    }
}

/// Returns the smallest of 1, 2, 5, 10, 20, … with few ticks up to `max`.
fn tick_step(max: f64) -> f64 {
    let mut decade = 1.0;
    loop {
        let fits = |step: &f64| max / step <= MAX_RATE_TICKS;
        if let Some(step) = [decade, 2.0 * decade, 5.0 * decade].into_iter().find(fits) {
            return step;
        }
        decade *= 10.0;
    }
}

fn write_line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4]) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>"
    );
}

fn write_text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (max, step) in [(1.0, 1.0), (6.5, 2.0), (40.0, 10.0), (1_025.0, 200.0)] {
            assert_eq!(tick_step(max), step, "{max}");
        }
    }
}
