//! The report as an HTML page without scripts or external resources.

use askama::Template;

use super::{
    plot::{
        BOTTOM, Bars, LEFT, LogScale, MeasuredValue, RIGHT, TOP, Tick, path, round, spread_labels,
    },
    report::{BenchComparison, BenchReport, ComponentFigures, FunctionFigures, Latency, Spread},
    text::format_figure,
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

/// The legend entry of a component, with figures about it as a whole.
struct Key<'r> {
    letter: String,
    colour: usize,
    component: &'r ComponentFigures,
    compiled: String,
    cached: String,
    idle: String,
}

struct Function<'r> {
    name: &'static str,
    rows: Vec<&'r FunctionFigures>,
    groups: Vec<Group>,
    comparisons: Vec<&'r BenchComparison>,
    curves: Curves,
    steps: Steps,
    throughput: Bars,
}

/// A group of table rows.
struct Group {
    title: &'static str,
    measures: Vec<Measure>,
}

struct Measure {
    name: &'static str,
    is_main: bool,
    /// One per component.
    cells: Vec<String>,
}

/// Latency by percentile.
struct Curves {
    width: f64,
    height: f64,
    x: Vec<Tick>,
    y: Vec<Tick>,
    lines: Vec<Line>,
    described: String,
}

struct Line {
    of: usize,
    fresh: String,
    floor: String,
    /// Position of the letter.
    end: (f64, f64),
}

/// Median latencies from native to fresh.
struct Steps {
    width: f64,
    height: f64,
    x: Vec<Tick>,
    rows: Vec<StepRow>,
    described: String,
}

struct StepRow {
    of: usize,
    y: f64,
    native: f64,
    warm: Option<f64>,
    floor: f64,
    fresh: f64,
    p99: f64,
}

impl BenchReport {
    #[must_use]
    pub fn page(&self) -> String {
        let functions = self.by_function().into_iter().map(|(name, rows)| {
            let of = |comparison: &&BenchComparison| comparison.function == name;
            Function {
                name,
                groups: groups(&rows),
                comparisons: self.comparisons.iter().filter(of).collect(),
                curves: Curves::of(&rows),
                steps: Steps::of(&rows),
                throughput: throughput(&rows),
                rows,
            }
        });
        let page = Page {
            report: self,
            keys: self.components.iter().enumerate().map(|(n, c)| Key::new(n, c)).collect(),
            bars: bars(&self.components),
            functions: functions.collect(),
        };
        page.render().expect("rendering into a String cannot fail")
    }
}

impl Key<'_> {
    fn new(n: usize, component: &ComponentFigures) -> Key<'_> {
        let ComponentFigures { cold_compiled, cold_cached, idle_kib, .. } = component;
        Key {
            letter: letter(n),
            colour: n % COLOURS,
            component,
            compiled: format_spread(cold_compiled),
            cached: format_spread(cold_cached),
            idle: idle_kib.map_or_else(|| "-".to_owned(), |kib| kib.to_string()),
        }
    }

    /// Returns the name without version and digest.
    fn name(&self) -> &str {
        self.component.plugin.split('@').next().unwrap_or_default()
    }
}

fn format_spread(spread: &Spread) -> String {
    let Spread { least_ms, median_ms, most_ms } = spread;
    format!(
        "{} ({} to {})",
        format_figure(*median_ms),
        format_figure(*least_ms),
        format_figure(*most_ms)
    )
}

fn groups(rows: &[&FunctionFigures]) -> Vec<Group> {
    let measure = |name, cell: fn(&FunctionFigures) -> String| {
        let cells = rows.iter().map(|row| cell(row)).collect();
        Measure { name, is_main: name == "Fresh, median", cells }
    };
    let alone = [
        measure("Native", |row| format_figure(row.native.p50_us)),
        measure("Warm", |row| {
            row.warm.as_ref().map_or("-".to_owned(), |l| format_figure(l.p50_us))
        }),
        measure("Floor", |row| format_figure(row.floor.p50_us)),
        measure("Fresh, median", |row| format_figure(row.fresh.p50_us)),
        measure("90th percentile", |row| format_figure(row.fresh.p90_us)),
        measure("99th percentile", |row| format_figure(row.fresh.p99_us)),
        measure("99.9th percentile", |row| format_figure(row.fresh.p99_9_us)),
        measure("Slowest", |row| format_figure(row.fresh.max_us)),
        measure("Noise", |row| format!("{:.0} %", row.fresh.noise_percent())),
        measure("Fresh to floor", |row| format!("{:.2}", row.ratio)),
    ];
    let takes = [
        measure("Result", |row| row.answer.clone()),
        measure("Runs", |row| row.runs.to_string()),
        measure("CPU time, µs", |row| format_figure(row.cpu_us)),
        measure("Peak memory, KiB", |row| row.peak_memory_kib.to_string()),
    ];
    let saturated = [
        measure("Calls per second", |row| format_figure(row.saturated.per_second)),
        measure("Concurrent calls", |row| row.saturated.at_once.to_string()),
        measure("Median, µs", |row| format_figure(row.saturated.p50_us)),
        measure("99th percentile, µs", |row| format_figure(row.saturated.p99_us)),
    ];
    vec![
        Group { title: "One call at a time, µs", measures: alone.into() },
        Group { title: "Resources of a call", measures: takes.into() },
        Group { title: "Saturated", measures: saturated.into() },
    ]
}

/// Returns `A` to `Z`, then `A1`.
fn letter(n: usize) -> String {
    let letter = char::from(b'A' + (n % 26) as u8);
    if n < 26 { letter.to_string() } else { format!("{letter}{}", n / 26) }
}

fn bars(components: &[ComponentFigures]) -> Vec<Bars> {
    let of = |value: fn(&ComponentFigures) -> MeasuredValue| {
        components.iter().map(value).enumerate().collect::<Vec<_>>()
    };
    let mut bars = vec![
        Bars::new(
            "Cold start with the compiler, ms",
            "lower is better",
            &of(|c| cold_start_value(&c.cold_compiled)),
        ),
        Bars::new(
            "Cold start from cached code, ms",
            "lower is better",
            &of(|c| cold_start_value(&c.cold_cached)),
        ),
        Bars::new(
            "Size of the component, KiB",
            "lower is better",
            &of(|c| (c.size_kib as f64, None)),
        ),
    ];
    if components.iter().all(|component| component.idle_kib.is_some()) {
        let idle = of(|c| (c.idle_kib.unwrap_or_default() as f64, None));
        bars.push(Bars::new("Memory while idle, KiB", "lower is better", &idle));
    }
    bars
}

fn cold_start_value(spread: &Spread) -> MeasuredValue {
    (spread.median_ms, Some((spread.least_ms, spread.most_ms)))
}

fn throughput(rows: &[&FunctionFigures]) -> Bars {
    let values = rows.iter().map(|row| {
        let saturated = &row.saturated;
        let range = (saturated.least_per_second, saturated.most_per_second);
        (row.of, (saturated.per_second, Some(range)))
    });
    Bars::new("Calls per second, saturated", "higher is better", &values.collect::<Vec<_>>())
}

impl Curves {
    fn of(rows: &[&FunctionFigures]) -> Curves {
        let latencies = rows.iter().flat_map(|row| [&row.fresh, &row.floor]);
        let values = latencies.flat_map(|latency| latency.curve.iter().map(|(_, us)| *us));
        let y = LogScale::around(values, CURVES_HEIGHT - BOTTOM, TOP);
        let curves = rows.iter().map(|row| row.fresh.curve.as_slice());
        let ends = curves.filter_map(<[_]>::last).map(|(nines, _)| *nines);
        let most = ends.fold(1.0, f64::max);
        let x = |nines: f64| round(LEFT + nines / most * (WIDTH - LEFT - RIGHT));
        let line = |latency: &Latency| {
            path(latency.curve.iter().map(|(nines, us)| (x(*nines), y.at(*us))))
        };
        let ends: Vec<f64> = rows.iter().map(|row| y.at(row.fresh.max_us)).collect();
        let ends = spread_labels(&ends, CURVES_HEIGHT - BOTTOM);
        let lines = rows.iter().zip(ends).map(|(row, end)| Line {
            of: row.of,
            fresh: line(&row.fresh),
            floor: line(&row.floor),
            end: (WIDTH - RIGHT + 14.0, end),
        });
        let inner =
            [("0", 0.0), ("50", 0.301), ("90", 1.0), ("99", 2.0), ("99.9", 3.0), ("99.99", 4.0)];
        let inner = inner.into_iter().filter(|(_, nines)| *nines < most - 0.2);
        let tick = |(label, nines): (&str, f64)| Tick { at: x(nines), label: label.to_owned() };
        Curves {
            width: WIDTH,
            height: CURVES_HEIGHT,
            x: inner.chain([("max", most)]).map(tick).collect(),
            y: y.ticks(),
            lines: lines.collect(),
            described: rows.iter().map(|row| describe_curve(row)).collect(),
        }
    }
}

impl Curves {
    fn right(&self) -> f64 {
        self.width - RIGHT
    }

    fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }
}

fn describe_curve(row: &FunctionFigures) -> String {
    let Latency { p50_us, p99_us, max_us, .. } = &row.fresh;
    format!(
        "{}: median {} microseconds, 99th percentile {}, maximum {}; median of the floor {}. ",
        row.plugin,
        format_figure(*p50_us),
        format_figure(*p99_us),
        format_figure(*max_us),
        format_figure(row.floor.p50_us)
    )
}

impl Steps {
    fn of(rows: &[&FunctionFigures]) -> Steps {
        let values = rows.iter().flat_map(|row| {
            let warm = row.warm.as_ref().map(|warm| warm.p50_us);
            [row.native.p50_us, row.floor.p50_us, row.fresh.p99_us].into_iter().chain(warm)
        });
        let x = LogScale::around(values, LEFT, WIDTH - RIGHT);
        let places = rows.iter().zip(0u32..).map(|(row, n)| StepRow {
            of: row.of,
            y: TOP + STEP_HEIGHT * (f64::from(n) + 0.5),
            native: x.at(row.native.p50_us),
            warm: row.warm.as_ref().map(|warm| x.at(warm.p50_us)),
            floor: x.at(row.floor.p50_us),
            fresh: x.at(row.fresh.p50_us),
            p99: x.at(row.fresh.p99_us),
        });
        Steps {
            width: WIDTH,
            height: TOP + STEP_HEIGHT * rows.len() as f64 + BOTTOM,
            x: x.ticks(),
            rows: places.collect(),
            described: rows.iter().map(|row| describe_steps(row)).collect(),
        }
    }
}

impl Steps {
    fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }
}

fn describe_steps(row: &FunctionFigures) -> String {
    let warm =
        row.warm.as_ref().map_or_else(|| "impossible".to_owned(), |l| format_figure(l.p50_us));
    let [native, floor, fresh] =
        [&row.native, &row.floor, &row.fresh].map(|l| format_figure(l.p50_us));
    let plugin = &row.plugin;
    format!("{plugin}: native {native} microseconds, warm {warm}, floor {floor}, fresh {fresh}. ")
}

#[cfg(test)]
mod tests {
    use super::letter;

    #[test]
    fn every_component_has_a_letter_of_its_own() {
        assert_eq!([0, 25, 26, 52].map(letter), ["A", "Z", "A1", "A2"]);
    }
}
