//! The WebAssembly engine, and the limits of one run: memory, tables and CPU time.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use rand::{SeedableRng, rngs::StdRng};
use wasmtime::{
    Config, Enabled, Engine, PoolingAllocationConfig, ResourceLimiter, Store, UpdateDeadline,
    WasmBacktrace, component::ResourceTable,
};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView};

use super::{
    compile::{CodeCache, Compiler},
    output::Output,
    session::{MAX_REQUEST_BYTES, Session},
};
use crate::{
    admission::publishers::TrustPolicy,
    limits::{
        bulkhead::{MemoryBudget, ReservedMemory},
        cpu::{self, CpuExhausted, CpuMeter},
    },
};
use tollhouse_platform::clock::Timestamp;

/// Interval at which a running guest's CPU time is checked and the guest may have to yield.
const TICK: Duration = Duration::from_micros(250);
/// The same while no guest runs. The first interval of a guest may be as long.
const IDLE_TICK: Duration = Duration::from_millis(2);
/// Maximum number of frames in the backtrace of a trap.
pub const MAX_FRAMES: usize = 16;
const MAX_TABLE_ENTRIES: usize = 200_000;
/// Maximum number of WASI resources of a guest, such as streams and clocks.
const MAX_RESOURCES: usize = 1_000;
/// Maximum size of one `get-random-bytes`, as in browsers.
const MAX_RANDOM_BYTES: u64 = 64 << 10;
/// Limits of a component, equal to the pool's limits per instance, so that an admitted component
/// always fits. QuickJS components have a second, empty memory.
const MAX_MEMORIES: u32 = 2;
const MAX_TABLES: u32 = 4;
const MAX_CORE_INSTANCES: u32 = 32;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Instances of all plugins. Further runs wait.
    pub instances: u32,
    /// All memories of one instance together.
    pub memory_bytes: usize,
    /// CPU time of a call: all of its runs, and the host's work on its behalf.
    pub cpu: Duration,
    /// Duration of a call, including waits.
    pub wall_clock: Duration,
    /// Calls of one plugin in flight. Further ones are rejected.
    pub calls: usize,
    /// New calls of one plugin that wait for an instance. Further ones are rejected.
    pub queue: usize,
    /// Memory of all calls of one plugin together.
    pub plugin_memory_bytes: usize,
    pub requests: usize,
    pub response_bytes: usize,
    pub component_bytes: usize,
    pub trust: TrustPolicy,
    /// Cache of machine code; `None`: no cache.
    pub code_cache: Option<CodeCache>,
    pub compiler: Compiler,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            instances: 200,
            memory_bytes: 64 << 20,
            cpu: Duration::from_secs(1),
            wall_clock: Duration::from_secs(30),
            calls: 10_000,
            queue: 1_000,
            plugin_memory_bytes: 1 << 30,
            requests: 16,
            response_bytes: 8 << 20,
            component_bytes: 32 << 20,
            trust: TrustPolicy::default(),
            code_cache: None,
            compiler: Compiler::InProcess,
        }
    }
}

impl Limits {
    /// Maximum size of one transfer from the guest: a response as `raw` or a request, plus 1 MiB.
    fn transfer_bytes(&self) -> usize {
        self.response_bytes.max(MAX_REQUEST_BYTES).saturating_add(1 << 20)
    }
}

/// Creates the engine. Pooled slots make a fresh instance per run affordable: 1 MiB of each stays
/// resident, and modified pages are found by a scan of the page map.
pub fn new(limits: &Limits) -> wasmtime::Result<Engine> {
    let engine = for_compiling(limits)?;
    start_ticking(&engine)?;
    Ok(engine)
}

/// Creates an engine that compiles and serializes components, but does not limit CPU time.
pub fn for_compiling(limits: &Limits) -> wasmtime::Result<Engine> {
    let n = limits.instances;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(n)
        .total_stacks(n)
        .total_memories(n.saturating_mul(MAX_MEMORIES))
        .total_core_instances(n.saturating_mul(MAX_CORE_INSTANCES))
        .total_tables(n.saturating_mul(MAX_TABLES))
        .max_memories_per_component(MAX_MEMORIES)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .max_tables_per_component(MAX_TABLES)
        .max_memories_per_module(MAX_MEMORIES)
        .max_tables_per_module(MAX_TABLES)
        .table_elements(100_000)
        .max_memory_size(limits.memory_bytes)
        .max_core_instance_size(8 << 20)
        .max_component_instance_size(8 << 20)
        .linear_memory_keep_resident(1 << 20)
        .table_keep_resident(1 << 20)
        .async_stack_keep_resident(64 << 10)
        .max_unused_warm_slots(n)
        .decommit_batch_size(1)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .memory_guaranteed_dense_image_size(64 << 20)
        .wasm_backtrace_max_frames(NonZeroUsize::new(MAX_FRAMES))
        .allocation_strategy(pool);
    Engine::new(&config)
}

/// Starts a thread that increments the epoch until the engine is dropped.
fn start_ticking(engine: &Engine) -> wasmtime::Result<()> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(if cpu::guest_runs() { TICK } else { IDLE_TICK });
        }
    };
    std::thread::Builder::new().name("plugin-ticks".into()).spawn(tick)?;
    Ok(())
}

/// The data of a store, for one run of a call.
pub struct State {
    pub session: Session,
    pub memory: Memory,
    pub output: Output,
    /// The backtrace of the error that ends the run at a request.
    pub request_backtrace: Option<WasmBacktrace>,
    cpu: Arc<CpuMeter>,
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The memory and table entries of a store.
pub struct Memory {
    /// Shared by all stores that the company has of the plugin.
    budget: MemoryBudget,
    reserved: Vec<ReservedMemory>,
    bytes: usize,
    max_bytes: usize,
    last_grown: usize,
    table_entries: usize,
    pub peak_bytes: usize,
    /// Memory was refused. The guest sees only a failed allocation.
    pub refused: bool,
    /// Memory was refused only because other calls use the plugin's budget.
    pub budget_exhausted: bool,
}

impl Memory {
    fn new(budget: MemoryBudget, max_bytes: usize) -> Memory {
        Memory {
            budget,
            reserved: Vec::new(),
            bytes: 0,
            max_bytes,
            last_grown: 0,
            table_entries: 0,
            peak_bytes: 0,
            refused: false,
            budget_exhausted: false,
        }
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let wanted = self.bytes.saturating_add(more);
        let is_within_limit = wanted <= self.max_bytes;
        let reserved = is_within_limit.then(|| self.budget.try_reserve(more)).flatten();
        let allowed = reserved.is_some();
        self.reserved.extend(reserved);
        self.budget_exhausted |=
            is_within_limit && !allowed && self.budget.could_ever_grant(wanted);
        self.last_grown = if allowed { more } else { 0 };
        self.bytes += self.last_grown;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        self.refused |= !allowed;
        Ok(allowed)
    }

    /// Releases memory that was reserved but not allocated.
    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        let not_grown = std::mem::take(&mut self.last_grown);
        self.bytes -= not_grown;
        if not_grown > 0 {
            self.reserved.pop();
        }
        self.refused = true;
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        self.table_entries = self.table_entries.saturating_add(more);
        Ok(self.table_entries <= MAX_TABLE_ENTRIES)
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES as usize
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES as usize
    }
}

/// Creates a store for one run of a call, which `cpu` measures.
pub fn store(
    engine: &Engine,
    limits: &Limits,
    budget: MemoryBudget,
    session: Session,
    cpu: Arc<CpuMeter>,
) -> Store<State> {
    let output = Output::default();
    let mut table = ResourceTable::new();
    table.set_max_capacity(MAX_RESOURCES);
    let state = State {
        wasi: deterministic_wasi(&session, &output),
        table,
        session,
        output,
        memory: Memory::new(budget, limits.memory_bytes),
        request_backtrace: None,
        cpu,
    };
    let max_cpu = limits.cpu;
    let mut store = Store::new(engine, state);
    store.data_mut().request_backtrace = Some(empty_backtrace(&store));
    store.set_hostcall_fuel(limits.transfer_bytes());
    store.limiter(|state| &mut state.memory);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |context| {
        let cpu = &context.data().cpu;
        if cpu.exceeds(max_cpu) {
            return Err(CpuExhausted.into());
        }
        Ok(match cpu.must_yield() {
            true => UpdateDeadline::Yield(1),
            false => UpdateDeadline::Continue(1),
        })
    });
    store
}

/// Returns a backtrace without frames. The engine captures and symbolizes one for every error
/// without a backtrace, which would take a tenth of the time of a call.
pub fn empty_backtrace<T: 'static>(store: &Store<T>) -> WasmBacktrace {
    WasmBacktrace::capture(store)
}

/// WASI without directories, environment or network, with a frozen clock and seeded randomness.
fn deterministic_wasi(session: &Session, output: &Output) -> WasiCtx {
    let seed = session.journal.seed;
    WasiCtx::builder()
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .wall_clock(FrozenClock(session.journal.began))
        .monotonic_clock(FrozenClock(session.journal.began))
        .secure_random(StdRng::seed_from_u64(seed ^ 1))
        .insecure_random(StdRng::seed_from_u64(seed ^ 2))
        .insecure_random_seed(u128::from(seed))
        .max_random_size(MAX_RANDOM_BYTES)
        .stdout(output.clone())
        .stderr(output.clone())
        .build()
}

/// A clock that is frozen at the start of the call.
struct FrozenClock(Timestamp);

impl HostWallClock for FrozenClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.0).unwrap_or(0))
    }
}

impl HostMonotonicClock for FrozenClock {
    fn resolution(&self) -> u64 {
        1_000_000
    }

    fn now(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::FutureExt;
    use tokio::sync::Semaphore;
    use wasmtime::component::Component;

    use super::*;
    use crate::{
        limits::cpu_throttle::{CpuPermits, CpuShare, throttled},
        runtime::session::Journal,
    };

    /// Returns a component with this many instances of a module that has a memory.
    fn component(memories: u8) -> Vec<u8> {
        // (module (memory 1))
        let module = b"\0asm\x01\0\0\0\x05\x03\x01\0\x01";
        let mut component = b"\0asm\x0d\0\x01\0\x01".to_vec();
        component.push(module.len() as u8);
        component.extend(module);
        for _ in 0..memories {
            component.extend(b"\x02\x04\x01\0\0\0"); // (core instance (instantiate 0))
        }
        component
    }

    #[test]
    fn growth_beyond_the_limits_is_refused() {
        let mut memory = Memory::new(MemoryBudget::new(usize::MAX), 100);
        (memory.bytes, memory.peak_bytes, memory.table_entries) = (1, 1, 1);
        assert!(!memory.memory_growing(0, usize::MAX, None).unwrap() && !memory.budget_exhausted);
        assert!(!memory.table_growing(0, usize::MAX, None).unwrap());
    }

    /// A module that calls `h.w` in an infinite loop.
    const LOOP: &[u8] =
        b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x07\x01\x01h\x01w\0\0\x03\x02\x01\0\
        \x07\x07\x01\x03run\0\x01\x0a\x0b\x01\x09\0\x03\x40\x10\0\x0c\0\x0b\x0b";

    #[tokio::test]
    async fn work_of_host_functions_counts_as_cpu_time_of_the_call() {
        const WORK: Duration = Duration::from_millis(20);
        let limits = Limits { cpu: WORK * 5, ..Limits::default() };
        let engine = new(&limits).unwrap();
        let calls = Arc::<AtomicU32>::default();
        let counted = calls.clone();
        let work = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let meter = CpuMeter::default();
            meter.count(async { while meter.used() < WORK {} }).now_or_never();
        };
        let mut linker = wasmtime::Linker::new(&engine);
        linker.func_wrap("h", "w", work).unwrap();
        let journal = Journal::new(1, [0; 32], Timestamp(0));
        let session = Session::new(journal, Arc::default(), "p".into(), Arc::default());
        let meter = Arc::<CpuMeter>::default();
        let budget = MemoryBudget::new(usize::MAX);
        let mut store = store(&engine, &limits, budget, session, meter.clone());
        let module = wasmtime::Module::new(&engine, LOOP).unwrap();
        let run = async {
            let instance = linker.instantiate_async(&mut store, &module).await?;
            let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
            run.call_async(&mut store, ()).await
        };
        let (plugin, company, host) = (CpuShare::default(), "".into(), Semaphore::new(1));
        let permits =
            CpuPermits { plugin: &plugin, company: &company, host: &host, interrupt: &|| () };
        let ended = meter.count(throttled(run, &meter, permits)).await.unwrap_err();
        assert!(ended.is::<CpuExhausted>(), "{ended:?}");
        let calls = calls.load(Ordering::Relaxed);
        assert!((4..=6).contains(&calls), "{calls} calls");
        assert!(meter.used() > limits.cpu, "{:?}", meter.used());
    }

    #[tokio::test]
    async fn a_component_with_too_many_memories_is_rejected() {
        let limits = Limits { instances: 2, ..Limits::default() };
        let engine = new(&limits).unwrap();
        assert!(Component::new(&engine, component(2)).is_ok());
        let greedy = Component::new(&engine, component(3)).unwrap_err();
        assert!(format!("{greedy:#}").contains("memories"), "{greedy:#}");
    }
}
