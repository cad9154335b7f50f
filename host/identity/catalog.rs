//! The types of identity that there are: those of the countries that are installed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    error::Result,
    money::Minor,
    plugins::{IdentityType, Plugins, Registers},
    seal::fingerprint,
};

/// Characters of an id.
const ID_LENGTH: usize = 24;

/// How an entry is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By its identifier.
    Number,
    /// The same, with a selfie that is compared with the photo on record.
    Face,
    /// By the photo of a document.
    Document,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Number, Way::Face, Way::Document];

    /// What stands behind a type's path.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Way::Number => "lookup",
            Way::Face => "lookup/with-face",
            Way::Document => "lookup/image",
        }
    }
}

/// A type of identity of a country, with the registers that know it: of one version, until it is dropped.
#[derive(Clone)]
pub struct Identity {
    pub registers: Registers,
    /// Its place in the manifest.
    index: usize,
}

/// A type of identity, as callers see it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Identity")]
pub struct View {
    /// The same on every host.
    id: String,
    /// What billing items and switches call it: `nigeria.bvn`.
    identity_name: String,
    /// What messages call it.
    name: String,
    description: String,
    /// A URL, which may be a `data:` URL.
    image: String,
    /// Whether it can be looked up now.
    active: bool,
    countries: Vec<String>,
    continents: Vec<String>,
    /// The paths of its lookups.
    paths: Vec<String>,
    /// The field that holds the identifier, and the regular expression that all of it must fit.
    field: String,
    pattern: String,
}

impl Identity {
    /// The name of its country's plugin: `nigeria`.
    #[must_use]
    pub fn country(&self) -> &str {
        &self.registers.manifest().name
    }

    /// What the manifest says of it.
    #[must_use]
    pub fn kind(&self) -> &IdentityType {
        &self.registers.country().identities[self.index]
    }

    /// `nigeria.bvn`
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.country(), self.kind().name)
    }

    /// What a lookup is billed as: `identity.nigeria.bvn.face`.
    #[must_use]
    pub fn item(&self, way: Way) -> String {
        let name = self.name();
        match way {
            Way::Number => format!("identity.{name}"),
            Way::Face => format!("identity.{name}.face"),
            Way::Document => format!("identity.{name}.image"),
        }
    }

    /// What it costs where no plan says otherwise.
    #[must_use]
    pub fn price(&self, way: Way) -> Minor {
        let prices = self.kind().prices;
        match way {
            Way::Number => prices.lookup,
            Way::Face => prices.face,
            Way::Document => prices.image,
        }
    }

    /// What errors call it: `driver's license`.
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

    /// The path of a lookup: `/api/v1/kyc/nigeria/bvn/lookup`.
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

/// The id of the type with this name: derived from country and name alone.
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

/// All types, by country and in the order of the manifests.
#[must_use]
pub fn all(plugins: &Plugins) -> Vec<Identity> {
    plugins.all_registers().into_iter().flat_map(of).collect()
}

/// The type with this name: `nigeria.bvn`.
#[must_use]
pub fn by_name(plugins: &Plugins, name: &str) -> Option<Identity> {
    let (country, name) = name.split_once('.')?;
    of(plugins.active_registers(country)?).find(|identity| identity.kind().name == name)
}

/// 503 when this host has the country of the type with this name not ready.
pub fn must_be_ready(plugins: &Plugins, name: &str) -> Result<()> {
    name.split_once('.').map_or(Ok(()), |(country, _)| plugins.must_be_ready(country))
}

/// What is looked up at `/api/v1/kyc/{country}/{path}`.
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
