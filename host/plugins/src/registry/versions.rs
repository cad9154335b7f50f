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
pub enum VersionState {
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
pub struct CanaryShare {
    /// Percentage of all calls, at random.
    pub percent: u8,
    /// Companies whose calls all go to the canary.
    pub companies: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginVersion {
    pub digest: String,
    pub state: VersionState,
    pub share: CanaryShare,
    /// Time of the latest activation; `None` if never activated, or rolled back.
    pub active_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionChange {
    /// Activates a version; `None`: the one that served last.
    Activate(Option<String>),
    Canary(String, CanaryShare),
    /// Ends a canary; without one, reactivates the previous version.
    RollBack,
    Deactivate,
}

pub fn apply_change(
    mut all: Vec<PluginVersion>,
    change: VersionChange,
    now: Timestamp,
) -> Result<Vec<PluginVersion>> {
    match change {
        VersionChange::Activate(digest) => {
            let digest = digest.or_else(|| last_active(&all)).ok_or_else(never_activated)?;
            find_permitted(&all, &digest)?;
            retire(&mut all, |state| matches!(state, VersionState::Active | VersionState::Canary));
            let version = find_mut(&mut all, &digest)?;
            (version.state, version.active_at) = (VersionState::Active, Some(now));
        }
        VersionChange::Canary(digest, share) => {
            if find_permitted(&all, &digest)?.state == VersionState::Active {
                return Err(Error::Conflict("this version is already active".to_owned()));
            }
            if !all.iter().any(|version| version.state == VersionState::Active) {
                let message = "a canary requires an active version: activate this version instead";
                return Err(Error::Conflict(message.to_owned()));
            }
            retire(&mut all, |state| state == VersionState::Canary);
            let version = find_mut(&mut all, &digest)?;
            (version.state, version.share) = (VersionState::Canary, share);
        }
        VersionChange::RollBack
            if all.iter().any(|version| version.state == VersionState::Canary) =>
        {
            retire(&mut all, |state| state == VersionState::Canary);
        }
        VersionChange::RollBack => {
            let active = all.iter_mut().find(|version| version.state == VersionState::Active);
            // The next rollback must not reactivate it.
            active.ok_or_else(no_active_version)?.active_at = None;
            let former = last_active(&all).ok_or_else(no_previous_version)?;
            retire(&mut all, |state| state == VersionState::Active);
            find_mut(&mut all, &former)?.state = VersionState::Active;
        }
        VersionChange::Deactivate => {
            if !all.iter().any(|version| version.state == VersionState::Active) {
                return Err(no_active_version());
            }
            retire(&mut all, |state| matches!(state, VersionState::Active | VersionState::Canary));
        }
    }
    Ok(all)
}

/// Makes versions in the matching states ready.
fn retire(all: &mut [PluginVersion], which: impl Fn(VersionState) -> bool) {
    for version in all.iter_mut().filter(|version| which(version.state)) {
        (version.state, version.share) = (VersionState::Ready, CanaryShare::default());
    }
}

/// Returns a version that may serve.
fn find_permitted<'a>(all: &'a [PluginVersion], digest: &str) -> Result<&'a PluginVersion> {
    let found = all.iter().find(|version| version.digest == digest);
    let version = found.ok_or_else(version_not_found)?;
    match version.state {
        VersionState::Waiting => {
            let message =
                "this version requests capabilities that are not granted: send grant true";
            Err(Error::Conflict(message.to_owned()))
        }
        _ => Ok(version),
    }
}

fn find_mut<'a>(all: &'a mut [PluginVersion], digest: &str) -> Result<&'a mut PluginVersion> {
    all.iter_mut().find(|version| version.digest == digest).ok_or_else(version_not_found)
}

/// Returns the latest version that was active before.
fn last_active(all: &[PluginVersion]) -> Option<String> {
    let former = all.iter().filter(|version| version.state == VersionState::Ready);
    let latest = former.max_by_key(|version| version.active_at)?;
    latest.active_at.map(|_| latest.digest.clone())
}

fn version_not_found() -> Error {
    Error::not_found("plugin version not found")
}

fn no_active_version() -> Error {
    Error::Conflict("no version of the plugin is active".to_owned())
}

fn never_activated() -> Error {
    Error::Conflict(
        "no version of the plugin has been active yet: specify one by its digest".to_owned(),
    )
}

fn no_previous_version() -> Error {
    Error::Conflict("no other version was active before this one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses versions: `a:active:5` is version `a`, active since time 5.
    fn versions(said: &str) -> Vec<PluginVersion> {
        let one = |said: &str| {
            let mut parts = said.split(':');
            let mut part = || parts.next().unwrap_or_default();
            PluginVersion {
                digest: part().to_owned(),
                state: match part() {
                    "waiting" => VersionState::Waiting,
                    "ready" => VersionState::Ready,
                    "canary" => VersionState::Canary,
                    _ => VersionState::Active,
                },
                active_at: part().parse().ok().map(Timestamp),
                share: CanaryShare::default(),
            }
        };
        said.split_whitespace().map(one).collect()
    }

    fn said(versions: &[PluginVersion]) -> String {
        let one = |version: &PluginVersion| {
            let state = format!("{:?}", version.state).to_lowercase();
            let since = version.active_at.map_or_else(|| "-".to_owned(), |at| at.0.to_string());
            format!("{}:{state}:{since}", version.digest)
        };
        versions.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn permitted_changes() {
        let activate = |digest: &str| VersionChange::Activate(Some(digest.to_owned()));
        let canary =
            |digest: &str| VersionChange::Canary(digest.to_owned(), CanaryShare::default());
        for (before, change, after) in [
            ("a:ready:-", activate("a"), "a:active:9"),
            ("a:active:1", activate("a"), "a:active:9"),
            ("a:active:1 b:ready:-", activate("b"), "a:ready:1 b:active:9"),
            ("a:active:1 b:canary:-", activate("b"), "a:ready:1 b:active:9"),
            ("a:active:1 b:canary:- c:ready:-", activate("c"), "a:ready:1 b:ready:- c:active:9"),
            (
                "a:ready:1 b:ready:2 c:ready:-",
                VersionChange::Activate(None),
                "a:ready:1 b:active:9 c:ready:-",
            ),
            ("a:active:1 b:ready:-", canary("b"), "a:active:1 b:canary:-"),
            ("a:active:1 b:canary:- c:ready:-", canary("c"), "a:active:1 b:ready:- c:canary:-"),
            ("a:active:1 b:canary:-", canary("b"), "a:active:1 b:canary:-"),
            ("a:ready:1 b:active:2", VersionChange::RollBack, "a:active:1 b:ready:-"),
            (
                "a:ready:1 b:ready:2 c:active:3",
                VersionChange::RollBack,
                "a:ready:1 b:active:2 c:ready:-",
            ),
            (
                "a:ready:1 b:active:2 c:canary:-",
                VersionChange::RollBack,
                "a:ready:1 b:active:2 c:ready:-",
            ),
            ("a:active:1 b:canary:-", VersionChange::Deactivate, "a:ready:1 b:ready:-"),
        ] {
            let done = apply_change(versions(before), change.clone(), Timestamp(9));
            assert_eq!(said(&done.unwrap()), after, "{before}, {change:?}");
        }
    }

    #[test]
    fn rejected_changes() {
        let activate = |digest: &str| VersionChange::Activate(Some(digest.to_owned()));
        let canary =
            |digest: &str| VersionChange::Canary(digest.to_owned(), CanaryShare::default());
        for (before, change, reason) in [
            ("a:active:1", activate("b"), "version not found"),
            ("a:waiting:-", activate("a"), "not granted"),
            ("a:ready:-", VersionChange::Activate(None), "has been active yet"),
            ("a:active:1 b:waiting:-", canary("b"), "not granted"),
            ("a:active:1", canary("a"), "already active"),
            ("a:ready:1 b:ready:-", canary("b"), "requires an active version"),
            ("a:active:1 b:ready:-", VersionChange::RollBack, "no other version"),
            ("a:active:1 b:waiting:-", VersionChange::RollBack, "no other version"),
            ("a:ready:1", VersionChange::RollBack, "no version of the plugin is active"),
            ("a:ready:1", VersionChange::Deactivate, "no version of the plugin is active"),
        ] {
            let refused = apply_change(versions(before), change.clone(), Timestamp(9)).unwrap_err();
            assert!(refused.to_string().contains(reason), "{before}, {change:?}: {refused}");
        }
    }

    #[test]
    fn repeated_rollbacks_reactivate_earlier_versions() {
        let mut all = versions("a:ready:1 b:ready:2 c:active:3");
        for expected in ["b", "a"] {
            all = apply_change(all, VersionChange::RollBack, Timestamp(9)).unwrap();
            let active: Vec<&PluginVersion> =
                all.iter().filter(|v| v.state == VersionState::Active).collect();
            assert_eq!(active.len(), 1);
            assert_eq!(active[0].digest, expected);
        }
        assert!(apply_change(all, VersionChange::RollBack, Timestamp(9)).is_err());
    }
}
