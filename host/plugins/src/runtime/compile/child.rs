//! Compiles components in a child process, because guests' limits do not cover the compiler.

use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};
use wasmtime::Engine;

use super::super::engine::{self, Limits};

/// Maximum size of machine code. Python's runtime needs 100 MiB.
const MAX_CODE_BYTES: u64 = 256 << 20;
/// Maximum length of a child's error message.
const MAX_REASON_BYTES: u64 = 2 << 10;
/// The child's subcommand. Machine code depends on its last argument, the memory of a call.
const SUBCOMMAND: &str = "compile-plugin";

/// The process that compiles components.
#[derive(Clone, Debug, Default)]
pub enum Compiler {
    /// This process, without limits: for trusted components only.
    #[default]
    InProcess,
    Child {
        /// An executable of this program.
        program: PathBuf,
        memory_bytes: u64,
        time: Duration,
    },
}

impl Compiler {
    /// Returns the machine code. `Err` is a reason for the operator.
    pub(crate) async fn compile(
        &self,
        engine: &Engine,
        limits: &Limits,
        wasm: &[u8],
    ) -> Result<Vec<u8>, String> {
        match self {
            Compiler::InProcess => {
                let (engine, wasm) = (engine.clone(), wasm.to_vec());
                let work = tokio::task::spawn_blocking(move || engine.precompile_component(&wasm));
                let code =
                    work.await.map_err(|_| "compilation of the component panicked".to_owned())?;
                code.map_err(|error| format!("the component does not compile: {error:#}"))
            }
            Compiler::Child { program, memory_bytes, time } => {
                let mut command = Command::new(program);
                command
                    .arg(SUBCOMMAND)
                    .arg(memory_bytes.to_string())
                    .arg(time.as_secs().to_string())
                    .arg(limits.memory_bytes.to_string())
                    // The compiler must not have this host's secrets.
                    .env_clear()
                    // The allocator must not reserve a gigabyte in advance.
                    .env("MIMALLOC_ARENA_RESERVE", "0")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .kill_on_drop(true);
                let child = command.spawn().map_err(|error| {
                    format!("the compiler {} cannot be started: {error}", program.display())
                })?;
                let done = timeout(*time, exchange(child, wasm, *memory_bytes)).await;
                done.unwrap_or_else(|_| {
                    let most = time.as_secs();
                    Err(format!("compilation of the component takes longer than {most} s"))
                })
            }
        }
    }
}

/// Sends the component to the child and receives the machine code.
async fn exchange(mut child: Child, wasm: &[u8], memory_bytes: u64) -> Result<Vec<u8>, String> {
    let lost = |error: io::Error| format!("communication with the compiler failed: {error}");
    let (mut code, mut reason) = (Vec::new(), Vec::new());
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(lost(io::ErrorKind::BrokenPipe.into()));
    };
    let send = async move {
        // A child that ends early reports the reason.
        let _ = stdin.write_all(wasm).await;
        Ok(())
    };
    let receive = async {
        let read = stdout.take(MAX_CODE_BYTES + 1).read_to_end(&mut code).await?;
        if read as u64 > MAX_CODE_BYTES {
            let most = MAX_CODE_BYTES >> 20;
            return Err(io::Error::other(format!("it generates more than {most} MiB of code")));
        }
        Ok(())
    };
    let receive_reason = async {
        let mut first = stderr.take(MAX_REASON_BYTES);
        first.read_to_end(&mut reason).await?;
        // The rest is discarded, so that the child does not block.
        tokio::io::copy(&mut first.into_inner(), &mut tokio::io::sink()).await?;
        Ok(())
    };
    tokio::try_join!(send, receive, receive_reason).map_err(lost)?;
    match child.wait().await.map_err(lost)? {
        status if status.success() => Ok(code),
        status => Err(failure_reason(status, &String::from_utf8_lossy(&reason), memory_bytes)),
    }
}

fn failure_reason(status: ExitStatus, output: &str, memory_bytes: u64) -> String {
    let line = output.lines().next().unwrap_or_default();
    match status.code() {
        // The first line is the error in the component.
        Some(1) => {
            let reason = line.strip_prefix("tollhouse: ").unwrap_or(line);
            format!("the component does not compile: {reason}")
        }
        Some(_) => format!("the compiler failed: {line}"),
        None if status.signal() == Some(Signal::XCPU.as_raw()) => {
            "compilation of the component takes too much CPU time".to_owned()
        }
        // An allocator without memory aborts.
        None => {
            let most = memory_bytes >> 20;
            format!("compilation of the component takes more than {most} MiB of memory")
        }
    }
}

/// Runs in the child: compiles a component from standard input to standard output, within limits on
/// memory and CPU time. `Err` is the error in the component.
pub fn compile_as_child(
    memory_bytes: u64,
    seconds: u64,
    call_memory_bytes: usize,
) -> Result<(), String> {
    let limit = |resource, most: u64| {
        // One second more, so that the signal is SIGXCPU and not SIGKILL.
        let maximum = if resource == Resource::Cpu { most.saturating_add(1) } else { most };
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(maximum) })
            .map_err(|error| format!("the limits of the compiler cannot be set: {error}"))
    };
    limit(Resource::Data, memory_bytes)?;
    limit(Resource::Cpu, seconds.saturating_mul(2))?; // sum of all threads
    limit(Resource::Core, 0)?;
    let mut wasm = Vec::new();
    let io = |error: io::Error| format!("the component cannot be read or written: {error}");
    io::stdin().lock().read_to_end(&mut wasm).map_err(io)?;
    let limits = Limits { memory_bytes: call_memory_bytes, instances: 1, ..Limits::default() };
    let engine = engine::for_compiling(&limits)
        .map_err(|error| format!("the engine cannot be created: {error:#}"))?;
    let code = engine.precompile_component(&wasm).map_err(|error| format!("{error:#}"))?;
    let mut out = io::stdout().lock();
    out.write_all(&code).and_then(|()| out.flush()).map_err(io)
}
