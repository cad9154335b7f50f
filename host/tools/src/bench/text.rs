//! The report for a terminal, at most 100 columns wide with names of usual length.

use std::fmt::{self, Formatter};

use super::{
    machine::Machine,
    report::{BenchComparison, BenchReport, ComponentFigures, FunctionFigures, Latency, Spread},
};

const LEGEND: &str = "\
fresh   a new instance for each run in this host; percentiles and noise are those of fresh calls
floor   the same runs under wasmtime alone; the ratio is fresh to floor
warm    one instance for all calls, under wasmtime alone: the possible gain from reusing instances
native  the call's requests, signatures and JSON without WebAssembly and without the plugin's logic:
        a lower bound for a plugin in native code
noise   spread of the medians of the rounds
cold    from the component's bytes to its first response, compiled or from the code cache
idle    memory of an installed component without calls";

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let BenchReport { iterations, rounds, .. } = self;
        writeln!(f, "{iterations} calls of each function in {rounds} rounds, microseconds\n")?;
        let names = self.components.iter().map(|component| component.plugin.len());
        let name = names.max().unwrap_or(0).max("component".len());
        self.write_components(f, name)?;
        self.write_latencies(f, name)?;
        self.write_loads(f, name)?;
        self.write_comparisons(f)?;
        writeln!(f, "\n{LEGEND}")?;
        for doubt in &self.doubts {
            writeln!(f, "warning: {doubt}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Machine { cores, cpu, kernel, load, tollhouse, wasmtime, .. } = self;
        write!(
            f,
            "{cores} cores of {cpu}, {kernel}, load {load:.1}; tollhouse {tollhouse}, wasmtime {wasmtime}"
        )
    }
}

impl BenchReport {
    fn write_components(&self, f: &mut Formatter<'_>, name: usize) -> fmt::Result {
        writeln!(
            f,
            "{:name$}  {:>9}  {:>20}  {:>20}  {:>9}",
            "component", "size KiB", "cold compiled ms", "cold cached ms", "idle KiB"
        )?;
        for ComponentFigures { plugin, size_kib, cold_compiled, cold_cached, idle_kib } in
            &self.components
        {
            let idle = idle_kib.map_or_else(|| "-".to_owned(), |kib| format_figure(kib as f64));
            let (compiled, cached) = (format_spread(cold_compiled), format_spread(cold_cached));
            writeln!(f, "{plugin:name$}  {size_kib:>9}  {compiled:>20}  {cached:>20}  {idle:>9}")?;
        }
        Ok(())
    }

    fn write_latencies(&self, f: &mut Formatter<'_>, name: usize) -> fmt::Result {
        let titles =
            ["native", "warm", "floor", "fresh", "ratio", "p90", "p99", "p99.9", "max", "noise"];
        for (function, rows) in self.by_function() {
            write!(f, "\n{function:name$}")?;
            write_cells(f, titles.map(str::to_owned))?;
            for row in rows {
                let FunctionFigures { plugin, fresh, floor, warm, native, ratio, .. } = row;
                let Latency { p50_us, p90_us, p99_us, p99_9_us, max_us, .. } = fresh;
                write!(f, "{plugin:name$}")?;
                let warm =
                    warm.as_ref().map_or_else(|| "-".to_owned(), |l| format_figure(l.p50_us));
                let cells =
                    [native.p50_us, floor.p50_us, *p50_us, *p90_us, *p99_us].map(format_figure);
                let [native, floor, fresh, p90, p99] = cells;
                let [p99_9, max] = [*p99_9_us, *max_us].map(format_figure);
                let noise = format!("{:.0} %", row.fresh.noise_percent());
                let ratio = format!("{ratio:.2}");
                let cells = [native, warm, floor, fresh, ratio, p90, p99, p99_9, max, noise];
                write_cells(f, cells)?;
            }
        }
        Ok(())
    }

    fn write_loads(&self, f: &mut Formatter<'_>, name: usize) -> fmt::Result {
        let titles =
            ["runs", "cpu", "peak KiB", "calls/s", "at once", "p50", "p99"].map(str::to_owned);
        writeln!(
            f,
            "\nResources of a call; throughput with as many concurrent calls as increase it"
        )?;
        for (function, rows) in self.by_function() {
            let answer = rows.iter().map(|row| row.answer.len()).max().unwrap_or(0).max(6);
            write!(f, "\n{function:name$} {:answer$}", "result")?;
            write_wide(f, &titles)?;
            for FunctionFigures {
                plugin,
                answer: said,
                runs,
                cpu_us,
                peak_memory_kib,
                saturated,
                ..
            } in rows
            {
                write!(f, "{plugin:name$} {said:answer$}")?;
                let cells = [
                    runs.to_string(),
                    format_figure(*cpu_us),
                    peak_memory_kib.to_string(),
                    format_figure(saturated.per_second),
                    saturated.at_once.to_string(),
                    format_figure(saturated.p50_us),
                    format_figure(saturated.p99_us),
                ];
                write_wide(f, &cells)?;
            }
        }
        Ok(())
    }

    fn write_comparisons(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.comparisons.is_empty() {
            writeln!(f)?;
        }
        for comparison in &self.comparisons {
            writeln!(f, "{}: {comparison}", comparison.function)?;
        }
        Ok(())
    }
}

impl fmt::Display for BenchComparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let BenchComparison { plugin, beside, times, beyond_noise, .. } = self;
        match beyond_noise {
            true => write!(f, "{plugin} takes {times:.2} times as long as {beside}"),
            false => write!(f, "{plugin} and {beside} do not differ by more than the noise"),
        }
    }
}

fn write_cells(f: &mut Formatter<'_>, cells: [String; 10]) -> fmt::Result {
    for cell in cells {
        write!(f, " {cell:>6}")?;
    }
    writeln!(f)
}

fn write_wide(f: &mut Formatter<'_>, cells: &[String; 7]) -> fmt::Result {
    for cell in cells {
        write!(f, " {cell:>8}")?;
    }
    writeln!(f)
}

fn format_spread(spread: &Spread) -> String {
    let Spread { least_ms, median_ms, most_ms } = spread;
    format!(
        "{} ({}-{})",
        format_figure(*median_ms),
        format_figure(*least_ms),
        format_figure(*most_ms)
    )
}

/// Formats the three measured digits, or all digits before the point.
pub fn format_figure(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        let figures = [0.0, 0.123, 9.876, 24.56, 123.44, 1_234.5, 54_321.0].map(format_figure);
        assert_eq!(figures, ["0", "0.12", "9.88", "24.6", "123", "1234", "54321"]);
    }
}
