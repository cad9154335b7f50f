//! The report for a terminal, at most 100 columns wide with names of usual length.

use std::fmt::{self, Formatter, Write as _};

use super::{
    machine::Machine,
    report::{
        BenchComparison, BenchReport, ComponentFigures, Figure, FunctionFigures, Latency,
        Saturated, Spread, by_function,
    },
};

const SUMMARY_LEGEND: &str = "\
fresh  median of a call in this host, with a new instance for each run
p99    99th percentile of the same
ratio  fresh to the same runs under wasmtime alone
--detail shows memory, throughput, cold starts and more percentiles.";

const LEGEND: &str = "\
fresh     a new instance for each run in this host; percentiles and noise are those of fresh calls
baseline  the same runs under wasmtime alone, with the conversion of arguments and results; the
          ratio is fresh to baseline
warm      one instance for all calls, under wasmtime alone: the possible gain from reusing instances
native    the call's requests, signatures and JSON without WebAssembly and without the plugin's logic:
          a lower bound for a plugin in native code
noise     spread of the medians of the rounds
cold      from the component's bytes to its first response, compiled or from the code cache
idle      memory of an installed component without calls";

/// One line per plugin and function.
impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_summary(f)?;
        writeln!(f, "\n{SUMMARY_LEGEND}")?;
        self.write_doubts(f)
    }
}

/// Everything that was measured.
struct Detailed<'r>(&'r BenchReport);

impl fmt::Display for Detailed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Detailed(report) = self;
        report.write_head(f)?;
        report.write_summary(f)?;
        writeln!(f)?;
        let name = report.name_width();
        report.write_components(f, name)?;
        report.write_latencies(f, name)?;
        report.write_loads(f, name)?;
        writeln!(f, "\n{LEGEND}")?;
        report.write_doubts(f)
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
    /// Returns the report with all tables.
    #[must_use]
    pub fn detailed(&self) -> String {
        Detailed(self).to_string()
    }

    fn name_width(&self) -> usize {
        let names = self.components.iter().map(|component| component.plugin.len());
        names.max().unwrap_or(0).max("component".len())
    }

    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let BenchReport { machine, iterations, rounds, .. } = self;
        writeln!(f, "{machine}")?;
        writeln!(f, "{iterations} calls of each function in {rounds} rounds, microseconds\n")
    }

    fn write_summary(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.name_width();
        let functions = self.functions.iter().map(|row| row.function.len());
        let function = functions.max().unwrap_or(0).max("function".len());
        let result = self.functions.iter().map(|row| row.answer.len()).max().unwrap_or(0);
        let result = result.max("result".len());
        writeln!(
            f,
            "{:name$}  {:function$}  {:result$}  fresh     p99  ratio",
            "component", "function", "result"
        )?;
        for row in &self.functions {
            let FunctionFigures { plugin, fresh, ratio, answer, .. } = row;
            let Latency { p50_us, p99_us, .. } = fresh;
            write!(f, "{plugin:name$}  {:function$}  {answer:result$}", row.function)?;
            writeln!(f, " {p50_us:>6} {p99_us:>7} {ratio:>6.2}")?;
        }
        if !self.comparisons.is_empty() {
            f.write_char('\n')?;
        }
        for comparison in &self.comparisons {
            writeln!(f, "{}: {comparison}", comparison.function)?;
        }
        Ok(())
    }

    fn write_doubts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "warning: {doubt}"))
    }

    fn write_components(&self, f: &mut Formatter<'_>, name: usize) -> fmt::Result {
        writeln!(
            f,
            "{:name$}   size KiB      cold compiled ms        cold cached ms   idle KiB",
            "component"
        )?;
        for ComponentFigures { plugin, size_kib, cold_compiled, cold_cached, idle_kib } in
            &self.components
        {
            let idle = or_dash(idle_kib.map(|kib| Figure(kib as f64)));
            writeln!(
                f,
                "{plugin:name$}  {size_kib:>9}  {cold_compiled:>20}  {cold_cached:>20}  {idle:>9}"
            )?;
        }
        Ok(())
    }

    fn write_latencies(&self, f: &mut Formatter<'_>, name: usize) -> fmt::Result {
        for (function, rows) in by_function(&self.functions) {
            writeln!(
                f,
                "\n{function:name$} native   warm  baseline  fresh  ratio    p90    p99  p99.9    max  noise"
            )?;
            for FunctionFigures { plugin, fresh, baseline, warm, native, ratio, .. } in rows {
                let Latency { p50_us, p90_us, p99_us, p99_9_us, max_us, .. } = fresh;
                let (native, baseline) = (native.p50_us, baseline.p50_us);
                let warm = or_dash(warm.as_ref().map(|warm| warm.p50_us));
                let noise = format!("{:.0} %", fresh.noise_percent());
                write!(f, "{plugin:name$} {native:>6} {warm:>6} {baseline:>9} {p50_us:>6}")?;
                write!(f, " {ratio:>6.2} {p90_us:>6} {p99_us:>6} {p99_9_us:>6}")?;
                writeln!(f, " {max_us:>6} {noise:>6}")?;
            }
        }
        Ok(())
    }

    fn write_loads(&self, f: &mut Formatter<'_>, name: usize) -> fmt::Result {
        writeln!(
            f,
            "\nResources of a call; throughput with as many concurrent calls as increase it"
        )?;
        for (function, rows) in by_function(&self.functions) {
            let width = rows.iter().map(|row| row.answer.len()).max().unwrap_or(0).max(6);
            writeln!(
                f,
                "\n{function:name$} {:width$}     runs      cpu peak KiB  calls/s  at once      p50      p99",
                "result"
            )?;
            for row in rows {
                let FunctionFigures { plugin, answer: result, runs, cpu_us, saturated, .. } = row;
                let Saturated { at_once, per_second, p50_us, p99_us, .. } = saturated;
                write!(f, "{plugin:name$} {result:width$} {runs:>8} {cpu_us:>8}")?;
                write!(f, " {:>8} {per_second:>8} {at_once:>8}", row.peak_memory_kib)?;
                writeln!(f, " {p50_us:>8} {p99_us:>8}")?;
            }
        }
        Ok(())
    }
}

fn or_dash(value: Option<Figure>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
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

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Spread { least_ms, median_ms, most_ms } = self;
        f.pad(&format!("{median_ms} ({least_ms}-{most_ms})"))
    }
}

/// Shows the three measured digits, or all digits before the point.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Figure(value) = *self;
        f.pad(&match value {
            0.0 => "0".to_owned(),
            _ if value < 10.0 => format!("{value:.2}"),
            _ if value < 100.0 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        let figures = [0.0, 0.123, 9.876, 24.56, 123.44, 1_234.5, 54_321.0];
        let figures = figures.map(|value| Figure(value).to_string());
        assert_eq!(figures, ["0", "0.12", "9.88", "24.6", "123", "1234", "54321"]);
    }
}
