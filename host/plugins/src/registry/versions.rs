//! State machine of a plugin's versions.

use super::store::PluginRow;
use crate::prelude::*;
use tollhouse_platform::{
    error::Result,
    store::{EnumString, IntoStaticStr, text_columns},
};

/// The state of a plugin version.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
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

text_columns!(VersionState);

/// The calls that a canary receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CanaryShare {
    /// Percentage of all calls, at random.
    pub percent: i64,
    /// Companies whose calls all go to the canary.
    pub companies: Vec<String>,
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

impl VersionChange {
    /// Returns the digest of the version that the change names.
    pub fn digest(&self) -> Option<&String> {
        match self {
            VersionChange::Activate(digest) => digest.as_ref(),
            VersionChange::Canary(digest, _) => Some(digest),
            VersionChange::RollBack | VersionChange::Deactivate => None,
        }
    }
}

pub fn apply_change(
    mut all: Vec<PluginRow>,
    change: &VersionChange,
    now: Timestamp,
) -> Result<Vec<PluginRow>> {
    let has = |state| all.iter().any(|version| version.state == state);
    let (has_active, has_canary) = (has(VersionState::Active), has(VersionState::Canary));
    let no_active = || conflict("no version of the plugin is active");
    match change {
        VersionChange::Activate(digest) => {
            let digest = digest.clone().or_else(|| last_active(&all)).ok_or_else(|| {
                conflict("no version of the plugin has been active yet: specify one by its digest")
            })?;
            find_permitted(&mut all, &digest)?;
            retire(&mut all, &[VersionState::Active, VersionState::Canary]);
            let version = find_permitted(&mut all, &digest)?;
            (version.state, version.active_at) = (VersionState::Active, Some(now));
        }
        VersionChange::Canary(digest, share) => {
            if find_permitted(&mut all, digest)?.state == VersionState::Active {
                return Err(conflict("this version is already active"));
            }
            if !has_active {
                let message = "a canary requires an active version: activate this version instead";
                return Err(conflict(message));
            }
            retire(&mut all, &[VersionState::Canary]);
            let version = find_permitted(&mut all, digest)?;
            version.state = VersionState::Canary;
            (version.percent, version.companies) = (share.percent, Json(share.companies.clone()));
        }
        VersionChange::RollBack if has_canary => retire(&mut all, &[VersionState::Canary]),
        VersionChange::RollBack => {
            let active = all.iter_mut().find(|version| version.state == VersionState::Active);
            // The next rollback must not reactivate it.
            active.ok_or_else(no_active)?.active_at = None;
            let former = last_active(&all)
                .ok_or_else(|| conflict("no other version was active before this one"))?;
            retire(&mut all, &[VersionState::Active]);
            find_permitted(&mut all, &former)?.state = VersionState::Active;
        }
        VersionChange::Deactivate if has_active => {
            retire(&mut all, &[VersionState::Active, VersionState::Canary]);
        }
        VersionChange::Deactivate => return Err(no_active()),
    }
    Ok(all)
}

/// Makes versions in these states ready.
fn retire(all: &mut [PluginRow], states: &[VersionState]) {
    for version in all.iter_mut().filter(|version| states.contains(&version.state)) {
        (version.state, version.percent) = (VersionState::Ready, 0);
        version.companies.0.clear();
    }
}

/// Returns a version that may serve.
fn find_permitted<'a>(all: &'a mut [PluginRow], digest: &str) -> Result<&'a mut PluginRow> {
    let found = all.iter_mut().find(|version| version.digest == digest);
    let version = found.ok_or_else(|| Error::not_found("plugin version not found"))?;
    match version.state {
        VersionState::Waiting => Err(conflict(
            "this version requests capabilities that are not granted: send grant true",
        )),
        _ => Ok(version),
    }
}

/// Returns the latest version that was active before.
fn last_active(all: &[PluginRow]) -> Option<String> {
    let former = all.iter().filter(|version| version.state == VersionState::Ready);
    let latest = former.max_by_key(|version| version.active_at)?;
    latest.active_at.map(|_| latest.digest.clone())
}

fn conflict(message: &str) -> Error {
    Error::Conflict(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses versions: `a:active:5` is version `a`, active since time 5.
    fn versions(text: &str) -> Vec<PluginRow> {
        let one = |text: &str| {
            let mut parts = text.split(':');
            let mut part = || parts.next().unwrap_or_default();
            PluginRow {
                digest: part().to_owned(),
                state: serde_json::from_value(part().into()).expect("a state"),
                active_at: part().parse().ok().map(Timestamp),
                name: "acme".to_owned(),
                version: "1.0.0".to_owned(),
                publisher: None,
                signature: None,
                granted: None,
                percent: 0,
                companies: Json(Vec::new()),
                installed_at: Timestamp(0),
                served_at: None,
                quarantined_at: None,
            }
        };
        text.split_whitespace().map(one).collect()
    }

    fn format_versions(versions: &[PluginRow]) -> String {
        let one = |version: &PluginRow| {
            let state = format!("{:?}", version.state).to_lowercase();
            let since = version.active_at.map_or_else(|| "-".to_owned(), |at| at.0.to_string());
            format!("{}:{state}:{since}", version.digest)
        };
        versions.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn activate(digest: &str) -> VersionChange {
        VersionChange::Activate(Some(digest.to_owned()))
    }

    fn canary(digest: &str) -> VersionChange {
        VersionChange::Canary(digest.to_owned(), CanaryShare::default())
    }

    #[test]
    fn permitted_changes() {
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
            let done = apply_change(versions(before), &change, Timestamp(9));
            assert_eq!(format_versions(&done.unwrap()), after, "{before}, {change:?}");
        }
    }

    #[test]
    fn rejected_changes() {
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
            let refused = apply_change(versions(before), &change, Timestamp(9)).unwrap_err();
            assert!(refused.to_string().contains(reason), "{before}, {change:?}: {refused}");
        }
    }

    #[test]
    fn repeated_rollbacks_reactivate_earlier_versions() {
        let mut all = versions("a:ready:1 b:ready:2 c:active:3");
        for expected in ["b", "a"] {
            all = apply_change(all, &VersionChange::RollBack, Timestamp(9)).unwrap();
            let active = all.iter().filter(|version| version.state == VersionState::Active);
            let active: Vec<&str> = active.map(|version| &*version.digest).collect();
            assert_eq!(active, [expected]);
        }
        assert!(apply_change(all, &VersionChange::RollBack, Timestamp(9)).is_err());
    }
}
