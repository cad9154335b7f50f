//! The report as an HTML page without scripts or external resources.

use askama::Template;

use super::{
    plot::{
        BOTTOM, Bars, LEFT, LogScale, MeasuredValue, RIGHT, TOP, Tick, path, round, spread_labels,
    },
    report::{
        BenchComparison, BenchReport, ComponentFigures, FunctionFigures, Latency, Saturated,
        Spread, by_function,
    },
};

const WIDTH: f64 = 560.0;
const CURVES_HEIGHT: f64 = 330.0;
const STEP_HEIGHT: f64 = 34.0;
/// Number of colours. Letters distinguish all components.
const COLOURS: usize = 6;

#[derive(Template)]
#[template(path = "bench.html")]
struct Page<'r> {
    report: &'r BenchReport,
    keys: Vec<Key<'r>>,
    bars: Vec<Bars>,
    functions: Vec<Function<'r>>,
}

/// The legend entry of a component.
struct Key<'r> {
    letter: String,
    colour: usize,
    /// The plugin's name without version and digest.
    name: &'r str,
    component: &'r ComponentFigures,
}

struct Function<'r> {
    name: &'static str,
    rows: Vec<&'r FunctionFigures>,
    comparisons: Vec<&'r BenchComparison>,
    curves: Curves,
    /// Scale of the median latencies from native to fresh.
    steps: LogScale,
    throughput: Bars,
}

/// Latency by percentile.
struct Curves {
    x: Vec<Tick>,
    y: Vec<Tick>,
    lines: Vec<Line>,
}

struct Line {
    of: usize,
    fresh: String,
    baseline: String,
    /// Height of the letter.
    end: f64,
}

impl BenchReport {
    pub fn page(&self) -> String {
        let keys = self.components.iter().enumerate().map(|(n, component)| {
            let name = component.plugin.split('@').next().unwrap_or_default();
            Key { letter: letter(n), colour: n % COLOURS, name, component }
        });
        let functions = by_function(&self.functions).into_iter().map(|(name, rows)| {
            let of = |comparison: &&BenchComparison| comparison.function == name;
            Function {
                name,
                comparisons: self.comparisons.iter().filter(of).collect(),
                curves: Curves::of(&rows),
                steps: step_scale(&rows),
                throughput: throughput(&rows),
                rows,
            }
        });
        let page = Page {
            report: self,
            keys: keys.collect(),
            bars: bars(&self.components),
            functions: functions.collect(),
        };
        page.render().expect("rendering into a String cannot fail")
    }
}

/// Returns `A` to `Z`, then `A1`.
fn letter(n: usize) -> String {
    let letter = char::from(b'A' + (n % 26) as u8);
    if n < 26 { letter.to_string() } else { format!("{letter}{}", n / 26) }
}

fn bars(components: &[ComponentFigures]) -> Vec<Bars> {
    let chart = |title, value: fn(&ComponentFigures) -> Option<MeasuredValue>| {
        let values: Option<Vec<MeasuredValue>> = components.iter().map(value).collect();
        Some(Bars::new(title, "lower is better", values?.into_iter().enumerate()))
    };
    let charts = [
        chart("Cold start with the compiler, ms", |c| Some(measured(&c.cold_compiled))),
        chart("Cold start from cached code, ms", |c| Some(measured(&c.cold_cached))),
        chart("Size of the component, KiB", |c| Some((c.size_kib as f64, None))),
        chart("Memory while idle, KiB", |c| Some((c.idle_kib? as f64, None))),
    ];
    charts.into_iter().flatten().collect()
}

fn measured(spread: &Spread) -> MeasuredValue {
    (spread.median_ms.0, Some((spread.least_ms.0, spread.most_ms.0)))
}

fn throughput(rows: &[&FunctionFigures]) -> Bars {
    let values = rows.iter().map(|row| {
        let Saturated { per_second, least_per_second, most_per_second, .. } = row.saturated;
        (row.of, (per_second.0, Some((least_per_second, most_per_second))))
    });
    Bars::new("Calls per second, saturated", "higher is better", values)
}

impl Curves {
    fn of(rows: &[&FunctionFigures]) -> Curves {
        let latencies = rows.iter().flat_map(|row| [&row.fresh, &row.baseline]);
        let values = latencies.flat_map(|latency| latency.curve.iter().map(|(_, us)| *us));
        let y = LogScale::around(values, CURVES_HEIGHT - BOTTOM, TOP);
        let ends = rows.iter().filter_map(|row| row.fresh.curve.last());
        let most = ends.map(|(nines, _)| *nines).fold(1.0, f64::max);
        let x = |nines: f64| round(LEFT + nines / most * (WIDTH - LEFT - RIGHT));
        let line = |latency: &Latency| {
            path(latency.curve.iter().map(|(nines, us)| (x(*nines), y.at(*us))))
        };
        let ends: Vec<f64> = rows.iter().map(|row| y.at(&row.fresh.max_us)).collect();
        let ends = spread_labels(&ends, CURVES_HEIGHT - BOTTOM);
        let lines = rows.iter().zip(ends).map(|(row, end)| Line {
            of: row.of,
            fresh: line(&row.fresh),
            baseline: line(&row.baseline),
            end,
        });
        let inner =
            [("0", 0.0), ("50", 0.301), ("90", 1.0), ("99", 2.0), ("99.9", 3.0), ("99.99", 4.0)];
        let inner = inner.into_iter().filter(|(_, nines)| *nines < most - 0.2);
        let tick = |(label, nines): (&str, f64)| Tick { at: x(nines), label: label.to_owned() };
        Curves {
            x: inner.chain([("max", most)]).map(tick).collect(),
            y: y.ticks(),
            lines: lines.collect(),
        }
    }
}

fn step_scale(rows: &[&FunctionFigures]) -> LogScale {
    let values =
        rows.iter().flat_map(|FunctionFigures { native, warm, baseline, fresh, .. }| {
            let warm = warm.as_ref().map(|warm| warm.p50_us);
            [native.p50_us, baseline.p50_us, fresh.p99_us].into_iter().chain(warm)
        });
    LogScale::around(values.map(|figure| figure.0), LEFT, WIDTH - RIGHT)
}

#[cfg(test)]
mod tests {
    use super::letter;

    #[test]
    fn every_component_has_a_letter_of_its_own() {
        assert_eq!([0, 25, 26, 52].map(letter), ["A", "Z", "A1", "A2"]);
    }
}
