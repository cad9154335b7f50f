//! Configuration primitives: layers of values, secrets, and the settings of the platform.

/// Declares a group of settings. Each row: name, type, `[range]`, `= default`, variable, unit, and
/// further attributes of clap. A `flag` is a bool that may stand alone: `--name`, `--name=false`.
#[macro_export]
#[doc(hidden)]
macro_rules! __settings {
    (@ [$group:literal $name:ident] {$($fields:tt)*}) => {
        #[derive(clap::Args, Clone, Debug)]
        #[command(next_help_heading = $group)]
        pub struct $name {$($fields)*}
    };
    (
        @ $head:tt $fields:tt
        $(#[$help:meta])*
        flag $setting:ident, $variable:literal $(, $attribute:ident = $value:expr)*;
        $($rows:tt)*
    ) => {
        $crate::__settings! {
            @ $head $fields
            $(#[$help])*
            $setting: bool = false, $variable, "bool" $(, $attribute = $value)*,
                action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true,
                default_missing_value = "true";
            $($rows)*
        }
    };
    (
        @ $head:tt {$($fields:tt)*}
        $(#[$help:meta])*
        $setting:ident: $type:ty $([$range:expr])? $(= $default:expr)?, $variable:literal,
            $unit:literal $(, $attribute:ident $(= $value:expr)?)*;
        $($rows:tt)*
    ) => {
        $crate::__settings! {
            @ $head {
                $($fields)*
                $(#[$help])*
                #[arg(
                    long, env = $variable, value_name = $unit
                    $(, value_parser = clap::value_parser!($type).range($range))?
                    $(, default_value_t = $default)?
                    $(, $attribute $(= $value)?)*
                )]
                pub $setting: $type,
            }
            $($rows)*
        }
    };
    ($group:literal $name:ident; $($rows:tt)*) => {
        $crate::__settings! { @ [$group $name] {} $($rows)* }
    };
}

pub use __settings as settings;

pub mod database;
pub mod email;
pub mod layers;
pub mod secrets;
pub mod telemetry;

/// A missing or invalid setting; the text names it and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

#[cfg(test)]
fn parse_flags<S: clap::Args>(flags: &[&str]) -> S {
    let command = S::augment_args(clap::Command::new("test").no_binary_name(true));
    S::from_arg_matches(&command.get_matches_from(flags)).unwrap()
}
