//! Confirmation of actions that cannot be undone.

use std::io::{IsTerminal, Write, stderr, stdin};

use clap::Args;

use super::failure::{Failure, Result};

#[derive(Args, Default)]
pub struct Confirmation {
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

impl Confirmation {
    /// Succeeds if the user at the terminal confirms or `--yes` is given.
    pub fn confirm(&self, question: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "{question} Standard input is not a terminal: pass --yes to confirm"
            )));
        }
        eprint!("{question} [y/N] ");
        let mut input = String::new();
        // Without a readable reply, the action is not confirmed.
        let read = stderr().flush().and_then(|()| stdin().read_line(&mut input));
        match read.is_ok() && ["y", "yes"].contains(&input.trim().to_lowercase().as_str()) {
            true => Ok(()),
            false => Err(Failure::refused("cancelled: nothing was changed")),
        }
    }
}
