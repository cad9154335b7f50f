//! State machine of a plugin's versions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    store::Type,
};

/// The state of a plugin version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Type)]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PluginState")]
pub enum State {
    /// Waits for a grant of requested capabilities.
    Waiting,
    /// Installed, receives no calls.
    Ready,
    /// Receives a share of the calls, beside the active version.
    Canary,
    /// Receives all calls that no canary receives.
    Active,
}

/// The calls that a canary receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Percentage of all calls, at random.
    pub percent: u8,
    /// Companies whose calls all go to the canary.
    pub companies: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub digest: String,
    pub state: State,
    pub share: Share,
    /// Time of the latest activation; `None` if never activated, or rolled back.
    pub active_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Activates a version; `None`: the one that served last.
    Activate(Option<String>),
    Canary(String, Share),
    /// Ends a canary; without one, reactivates the previous version.
    RollBack,
    Deactivate,
}

pub fn changed(mut all: Vec<Version>, change: Change, now: Timestamp) -> Result<Vec<Version>> {
    match change {
        Change::Activate(digest) => {
            let digest = digest.or_else(|| last_served(&all)).ok_or_else(none_served)?;
            fit(&all, &digest)?;
            retire(&mut all, |state| matches!(state, State::Active | State::Canary));
            let version = find(&mut all, &digest)?;
            (version.state, version.active_at) = (State::Active, Some(now));
        }
        Change::Canary(digest, share) => {
            if fit(&all, &digest)?.state == State::Active {
                return Err(Error::Conflict("this version is already active".to_owned()));
            }
            if !all.iter().any(|version| version.state == State::Active) {
                let message = "a canary requires an active version: activate this version instead";
                return Err(Error::Conflict(message.to_owned()));
            }
            retire(&mut all, |state| state == State::Canary);
            let version = find(&mut all, &digest)?;
            (version.state, version.share) = (State::Canary, share);
        }
        Change::RollBack if all.iter().any(|version| version.state == State::Canary) => {
            retire(&mut all, |state| state == State::Canary);
        }
        Change::RollBack => {
            let active = all.iter_mut().find(|version| version.state == State::Active);
            // The next rollback must not reactivate it.
            active.ok_or_else(none_serves)?.active_at = None;
            let former = last_served(&all).ok_or_else(no_former)?;
            retire(&mut all, |state| state == State::Active);
            find(&mut all, &former)?.state = State::Active;
        }
        Change::Deactivate => {
            if !all.iter().any(|version| version.state == State::Active) {
                return Err(none_serves());
            }
            retire(&mut all, |state| matches!(state, State::Active | State::Canary));
        }
    }
    Ok(all)
}

/// Makes versions in the matching states ready.
fn retire(all: &mut [Version], which: impl Fn(State) -> bool) {
    for version in all.iter_mut().filter(|version| which(version.state)) {
        (version.state, version.share) = (State::Ready, Share::default());
    }
}

/// Returns a version that may serve.
fn fit<'a>(all: &'a [Version], digest: &str) -> Result<&'a Version> {
    let found = all.iter().find(|version| version.digest == digest);
    let version = found.ok_or_else(no_version)?;
    match version.state {
        State::Waiting => {
            let message =
                "this version requests capabilities that are not granted: send grant true";
            Err(Error::Conflict(message.to_owned()))
        }
        _ => Ok(version),
    }
}

fn find<'a>(all: &'a mut [Version], digest: &str) -> Result<&'a mut Version> {
    all.iter_mut().find(|version| version.digest == digest).ok_or_else(no_version)
}

/// Returns the latest version that was active before.
fn last_served(all: &[Version]) -> Option<String> {
    let former = all.iter().filter(|version| version.state == State::Ready);
    let latest = former.max_by_key(|version| version.active_at)?;
    latest.active_at.map(|_| latest.digest.clone())
}

fn no_version() -> Error {
    Error::not_found("plugin version not found")
}

fn none_serves() -> Error {
    Error::Conflict("no version of the plugin is active".to_owned())
}

fn none_served() -> Error {
    Error::Conflict(
        "no version of the plugin has been active yet: specify one by its digest".to_owned(),
    )
}

fn no_former() -> Error {
    Error::Conflict("no other version was active before this one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses versions: `a:active:5` is version `a`, active since time 5.
    fn versions(said: &str) -> Vec<Version> {
        let one = |said: &str| {
            let mut parts = said.split(':');
            let mut part = || parts.next().unwrap_or_default();
            Version {
                digest: part().to_owned(),
                state: match part() {
                    "waiting" => State::Waiting,
                    "ready" => State::Ready,
                    "canary" => State::Canary,
                    _ => State::Active,
                },
                active_at: part().parse().ok().map(Timestamp),
                share: Share::default(),
            }
        };
        said.split_whitespace().map(one).collect()
    }

    fn said(versions: &[Version]) -> String {
        let one = |version: &Version| {
            let state = format!("{:?}", version.state).to_lowercase();
            let since = version.active_at.map_or_else(|| "-".to_owned(), |at| at.0.to_string());
            format!("{}:{state}:{since}", version.digest)
        };
        versions.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn permitted_changes() {
        let activate = |digest: &str| Change::Activate(Some(digest.to_owned()));
        let canary = |digest: &str| Change::Canary(digest.to_owned(), Share::default());
        for (before, change, after) in [
            ("a:ready:-", activate("a"), "a:active:9"),
            ("a:active:1", activate("a"), "a:active:9"),
            ("a:active:1 b:ready:-", activate("b"), "a:ready:1 b:active:9"),
            ("a:active:1 b:canary:-", activate("b"), "a:ready:1 b:active:9"),
            ("a:active:1 b:canary:- c:ready:-", activate("c"), "a:ready:1 b:ready:- c:active:9"),
            (
                "a:ready:1 b:ready:2 c:ready:-",
                Change::Activate(None),
                "a:ready:1 b:active:9 c:ready:-",
            ),
            ("a:active:1 b:ready:-", canary("b"), "a:active:1 b:canary:-"),
            ("a:active:1 b:canary:- c:ready:-", canary("c"), "a:active:1 b:ready:- c:canary:-"),
            ("a:active:1 b:canary:-", canary("b"), "a:active:1 b:canary:-"),
            ("a:ready:1 b:active:2", Change::RollBack, "a:active:1 b:ready:-"),
            ("a:ready:1 b:ready:2 c:active:3", Change::RollBack, "a:ready:1 b:active:2 c:ready:-"),
            ("a:ready:1 b:active:2 c:canary:-", Change::RollBack, "a:ready:1 b:active:2 c:ready:-"),
            ("a:active:1 b:canary:-", Change::Deactivate, "a:ready:1 b:ready:-"),
        ] {
            let done = changed(versions(before), change.clone(), Timestamp(9));
            assert_eq!(said(&done.unwrap()), after, "{before}, {change:?}");
        }
    }

    #[test]
    fn rejected_changes() {
        let activate = |digest: &str| Change::Activate(Some(digest.to_owned()));
        let canary = |digest: &str| Change::Canary(digest.to_owned(), Share::default());
        for (before, change, reason) in [
            ("a:active:1", activate("b"), "version not found"),
            ("a:waiting:-", activate("a"), "not granted"),
            ("a:ready:-", Change::Activate(None), "has been active yet"),
            ("a:active:1 b:waiting:-", canary("b"), "not granted"),
            ("a:active:1", canary("a"), "already active"),
            ("a:ready:1 b:ready:-", canary("b"), "requires an active version"),
            ("a:active:1 b:ready:-", Change::RollBack, "no other version"),
            ("a:active:1 b:waiting:-", Change::RollBack, "no other version"),
            ("a:ready:1", Change::RollBack, "no version of the plugin is active"),
            ("a:ready:1", Change::Deactivate, "no version of the plugin is active"),
        ] {
            let refused = changed(versions(before), change.clone(), Timestamp(9)).unwrap_err();
            assert!(refused.to_string().contains(reason), "{before}, {change:?}: {refused}");
        }
    }

    #[test]
    fn repeated_rollbacks_reactivate_earlier_versions() {
        let mut all = versions("a:ready:1 b:ready:2 c:active:3");
        for expected in ["b", "a"] {
            all = changed(all, Change::RollBack, Timestamp(9)).unwrap();
            let active: Vec<&Version> = all.iter().filter(|v| v.state == State::Active).collect();
            assert_eq!(active.len(), 1);
            assert_eq!(active[0].digest, expected);
        }
        assert!(changed(all, Change::RollBack, Timestamp(9)).is_err());
    }
}
