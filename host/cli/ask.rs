//! Asking before something is done that cannot be taken back.

use std::io::{IsTerminal, Write, stderr, stdin};

use clap::Args;

use super::failure::Failure;

#[derive(Args, Default)]
pub struct Yes {
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

impl Yes {
    /// Goes on when somebody at the terminal agrees, or `--yes` was given.
    pub fn ask(&self, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !stdin().is_terminal() {
            let message = format!("{question} Say --yes: there is nobody to ask");
            return Err(Failure::Usage(message));
        }
        eprint!("{question} [y/N] ");
        let mut answer = String::new();
        // What cannot be asked or read is no yes.
        let asked = stderr().flush().and_then(|()| stdin().read_line(&mut answer));
        match asked.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            true => Ok(()),
            false => Err(Failure::refused("nothing was done")),
        }
    }
}
