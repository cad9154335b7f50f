//! A guest's standard output and error: the first 4 KiB are logged, the rest is discarded.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError},
};

const MAX_BYTES: usize = 4 << 10;

/// Captured output, shared by clones.
#[derive(Clone, Default)]
pub struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    pub fn contents(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Puts the end of the guest's output, where panics are reported, before the reason of its failure.
pub fn prepend_output(wrote: &str, why: String) -> String {
    let mut lines: Vec<&str> = wrote.lines().rev().take(6).collect();
    if lines.is_empty() {
        return why;
    }
    lines.reverse();
    let words = lines.join("\n");
    let words = &words[words.ceil_char_boundary(words.len().saturating_sub(400))..];
    format!("it wrote {words:?}: {why}")
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = bytes.len().min(MAX_BYTES - kept.len());
        kept.extend_from_slice(&bytes[..fits]);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(MAX_BYTES)
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Used by WASI 0.3 only, which is not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_beyond_the_limit_is_discarded_without_an_error() {
        let output = Output::default();
        let mut streams = [output.clone(), output.clone()];
        for n in 0..10 {
            let stream = &mut streams[n % 2];
            let room = stream.check_write().unwrap();
            assert!(room > 0);
            stream.write(Bytes::from(vec![b'x'; 1000])).unwrap();
        }
        assert_eq!(output.contents(), [b'x'; MAX_BYTES]);
    }
}
