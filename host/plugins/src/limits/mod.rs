//! Limits on plugins: CPU time, memory, concurrency, and the circuit breaker. `settings.rs` has
//! their values.
//!
//! Attacks by a plugin, or by a client through it, and the defences. `tests/guests/unruly` performs
//! the attacks; `benches/hostile.rs` measures another plugin meanwhile.
//!
//! | Attack | Defence | Tests |
//! |---|---|---|
//! | Endless loop | CPU budget; turns and permits on the processors (`cpu_throttle.rs`) | `unruly.rs`, `loop` |
//! | Loop over expensive host functions | The same CPU budget (`cpu.rs`); `engine::MAX_RANDOM_BYTES`, `vault::MAX_BYTES`, hostcall fuel | `cpu_time.rs`, `host-loop-…` |
//! | Memory bomb | `engine::Memory`; the plugin's memory budget (`bulkhead.rs`) | `unruly.rs`, `grow`; `containment.rs` |
//! | Unbounded recursion | Stack limit of an instance | `unruly.rs`, `recurse` |
//! | Huge return value, flood of headers | Hostcall fuel, `MAX_REQUEST_BYTES`, `MAX_HEADERS`, `contract/v1/convert.rs` | `unruly.rs`, `big`, `headers` |
//! | Leaked resources | Capacity of the table (`engine::MAX_RESOURCES`); a store ends with its run | `unruly.rs`, `leak` |
//! | Unbounded output or log | `output.rs`; maximum number of lines per call | `unruly.rs`, `print` |
//! | Storm of traps | Quarantine (`health.rs`) | `containment.rs` |
//! | Different requests in each run | `Session::send` | `unruly.rs`, `random-request` |
//! | Text that takes long to search for secrets | The same CPU budget | `cpu_time.rs`, `say` |
//! | Secret in another header, the body, the URL, or to another origin | `send::misplaced_secret` | `unruly.rs`, `send-secret` |
//! | Placeholder in a client's text | Placeholders are random and valid for one call | `secrets.rs` |
//! | Forbidden, private and metadata addresses | Grants, `Egress::check_url` | `unruly.rs`, `outbound/egress` |
//! | Name that resolves to a private address, redirect | `EgressPolicy::resolve` at connection time; redirects are not followed | `outbound/egress`; `unruly.rs` |
//! | Slow upstream with many calls | A waiting call holds no instance; `Bulkhead::try_begin_call`, circuit breakers | `containment.rs`, `benches/waiting.rs` |

pub mod breaker;
pub mod bulkhead;
pub mod cpu;
pub mod cpu_throttle;
pub mod fair_semaphore;
pub mod health;
pub mod settings;
