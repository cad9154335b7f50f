//! One measurement at one rate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rand::{SeedableRng, rngs::StdRng};
use tokio::runtime::Handle;

use crate::{
    Mix, Options, Result,
    driver::{self, Slot},
    host_metrics::{HostMetrics, own_cpu_s},
    operations::Run,
    recorder::Recorder,
    report::Phase,
    schedule::Schedule,
    target::Target,
};

pub struct Load {
    pub target: Arc<Target>,
    pub mix: Mix,
    pub options: Options,
}

/// Counters at one moment.
pub struct Sample {
    pub at: Instant,
    pub hosts: HostMetrics,
    pub events: u64,
    pub own_cpu_s: Option<f64>,
}

impl Load {
    /// Runs at this rate for the warm-up, which is not recorded, and for `duration`.
    pub async fn run(&self, rate: f64, duration: Duration) -> Result<Phase> {
        let options = &self.options;
        let (began, warm_up) = (Instant::now(), options.warm_up());
        let (first, end) = (began + warm_up, warm_up + duration);
        let recorders = [began, first].map(|began| Arc::new(Recorder::new(began)));
        let [warm, measured] = recorders.clone();
        let offsets = Schedule::new(options.arrivals, rate, options.seed);
        let (target, mix) = (self.target.clone(), self.mix.clone());
        // Not the seed of the schedule: the two would be correlated.
        let mut random = StdRng::seed_from_u64(!options.seed);
        let runtime = Handle::current();
        let start = move |intended: Instant, slot: Slot| {
            let run = Run {
                operation: mix.draw(&mut random),
                number: target.next_number(),
                intended,
                recorder: if intended < first { warm.clone() } else { measured.clone() },
                target: target.clone(),
            };
            match slot {
                None => run.drop_unsent(),
                Some(slot) => {
                    runtime.spawn(async move {
                        run.run().await;
                        drop(slot);
                    });
                }
            }
        };
        let offsets = offsets.take_while(move |offset| *offset < end);
        let driven = driver::drive(offsets, began, options.in_flight, start);
        let sampled = async {
            let before = self.sample(first).await?;
            Result::<_>::Ok((before, self.sample(began + end).await?))
        };
        let ((), samples) = tokio::join!(driven, sampled);
        self.target.receiver.drain(Duration::from_secs(options.drain_s)).await;
        let [_, measured] = &recorders;
        let (before, after) = samples?;
        Ok(Phase::new(rate, duration, measured, &before, &after))
    }

    async fn sample(&self, at: Instant) -> Result<Sample> {
        tokio::time::sleep_until(at.into()).await;
        let hosts = self.target.metrics().await?;
        let (events, own_cpu_s) = (self.target.receiver.delivered(), own_cpu_s());
        Ok(Sample { at: Instant::now(), hosts, events, own_cpu_s })
    }
}
