//! Identity types of the installed country plugins.

use schemars::JsonSchema;
use serde::Serialize;

use tollhouse_platform::{crypto::seal::fingerprint, error::Result, values::money::Minor};
use tollhouse_plugins::{IdentityType, Plugins, Registers};

/// Length of an id in characters.
const ID_LENGTH: usize = 24;

/// Method of an identity lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By identifier.
    Number,
    /// By identifier, with a selfie that is compared with the photo on record.
    Face,
    /// By the photo of a document.
    Document,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Number, Way::Face, Way::Document];

    /// Returns the path segments that follow the path of a type.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Way::Number => "lookup",
            Way::Face => "lookup/with-face",
            Way::Document => "lookup/image",
        }
    }
}

/// An identity type, with the plugin version that serves it.
#[derive(Clone)]
pub struct Identity {
    pub registers: Registers,
    /// Index in the manifest.
    index: usize,
}

/// An identity type.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Identity")]
pub struct View {
    /// Same id on every host.
    id: String,
    /// Name in billing items and switches, for example `nigeria.bvn`.
    identity_name: String,
    /// Display name.
    name: String,
    description: String,
    /// URL, possibly a `data:` URL.
    image: String,
    /// `false` if lookups are disabled.
    active: bool,
    countries: Vec<String>,
    continents: Vec<String>,
    /// Paths of the lookup endpoints.
    paths: Vec<String>,
    /// Request field of the identifier, all of which must match the regular expression `pattern`.
    field: String,
    pattern: String,
}

impl Identity {
    /// Returns the name of the country plugin, for example `nigeria`.
    #[must_use]
    pub fn country(&self) -> &str {
        &self.registers.manifest().name
    }

    /// Returns the type's part of the manifest.
    #[must_use]
    pub fn kind(&self) -> &IdentityType {
        &self.registers.country().identities[self.index]
    }

    /// Returns the name, for example `nigeria.bvn`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.country(), self.kind().name)
    }

    /// Returns the billing item of a lookup, for example `identity.nigeria.bvn.face`.
    #[must_use]
    pub fn item(&self, way: Way) -> String {
        let name = self.name();
        match way {
            Way::Number => format!("identity.{name}"),
            Way::Face => format!("identity.{name}.face"),
            Way::Document => format!("identity.{name}.image"),
        }
    }

    /// Returns the price of a lookup that no plan prices.
    #[must_use]
    pub fn price(&self, way: Way) -> Minor {
        let prices = self.kind().prices;
        match way {
            Way::Number => prices.lookup,
            Way::Face => prices.face,
            Way::Document => prices.image,
        }
    }

    /// Returns the name in error messages, for example `driver's license`.
    #[must_use]
    pub fn noun(&self) -> String {
        self.kind().display_name.to_lowercase()
    }

    #[must_use]
    pub fn offers(&self, way: Way) -> bool {
        match way {
            Way::Number => true,
            Way::Face => self.kind().face,
            Way::Document => self.kind().document,
        }
    }

    /// Returns the path of a lookup, for example `/api/v1/kyc/nigeria/bvn/lookup`.
    #[must_use]
    pub fn path(&self, way: Way) -> String {
        format!("/api/v1/kyc/{}/{}/{}", self.country(), self.kind().path, way.suffix())
    }

    #[must_use]
    pub fn view(&self, active: bool) -> View {
        let (country, kind) = (self.registers.country(), self.kind().clone());
        let ways = Way::ALL.into_iter().filter(|way| self.offers(*way));
        View {
            id: id_of(&self.name()),
            identity_name: self.name(),
            paths: ways.map(|way| self.path(way)).collect(),
            name: kind.display_name,
            description: kind.description,
            image: kind.image,
            active,
            countries: country.countries.clone(),
            continents: country.continents.clone(),
            field: kind.field,
            pattern: kind.pattern.text().to_owned(),
        }
    }
}

/// Returns the id of a type, derived from its name alone.
#[must_use]
pub fn id_of(name: &str) -> String {
    let (country, kind) = name.split_once('.').unwrap_or((name, ""));
    let mut id = fingerprint(&["identity", country, kind]);
    id.truncate(ID_LENGTH);
    id
}

fn of(registers: Registers) -> impl Iterator<Item = Identity> {
    let types = registers.country().identities.len();
    (0..types).map(move |index| Identity { registers: registers.clone(), index })
}

/// Returns all types, by country and in the order of the manifests.
#[must_use]
pub fn all(plugins: &Plugins) -> Vec<Identity> {
    plugins.all_registers().into_iter().flat_map(of).collect()
}

/// Returns the type with a name such as `nigeria.bvn`.
#[must_use]
pub fn by_name(plugins: &Plugins, name: &str) -> Option<Identity> {
    let (country, name) = name.split_once('.')?;
    of(plugins.active_registers(country)?).find(|identity| identity.kind().name == name)
}

/// Returns 503 if the country plugin of a type is not ready on this host.
pub fn must_be_ready(plugins: &Plugins, name: &str) -> Result<()> {
    name.split_once('.').map_or(Ok(()), |(country, _)| plugins.must_be_ready(country))
}

/// Returns type and method of the lookup at `/api/v1/kyc/{country}/{path}`.
#[must_use]
pub fn at(
    plugins: &Plugins,
    company_id: &str,
    country: &str,
    path: &str,
) -> Option<(Identity, Way)> {
    let way = Way::ALL.into_iter().find(|way| path.ends_with(way.suffix()))?;
    let path = path.strip_suffix(way.suffix())?.strip_suffix('/')?;
    of(plugins.registers(country, company_id)?)
        .find(|identity| identity.kind().path == path && identity.offers(way))
        .map(|identity| (identity, way))
}
