//! Identity types of the installed country plugins.

use crate::{state::prelude::*, tenants::wallet::BillingItem};
use tollhouse_platform::crypto::seal::fingerprint;
use tollhouse_plugins::{CountryPlugin, IdentityType, Plugins};

const ID_LENGTH: usize = 24;

/// Method of an identity lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupMethod {
    /// By identifier.
    Number,
    /// By identifier, with a selfie that is compared with the photo on record.
    Face,
    /// By the photo of a document.
    Document,
}

impl LookupMethod {
    const ALL: [LookupMethod; 3] =
        [LookupMethod::Number, LookupMethod::Face, LookupMethod::Document];

    /// Returns the path segments that follow the path of a type.
    fn suffix(self) -> &'static str {
        match self {
            LookupMethod::Number => "lookup",
            LookupMethod::Face => "lookup/with-face",
            LookupMethod::Document => "lookup/image",
        }
    }
}

/// An identity type, with the plugin version that serves it.
#[derive(Clone)]
pub struct Identity {
    pub country_plugin: CountryPlugin,
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
    /// Request field of the identifier. The whole identifier must match the regular expression
    /// `pattern`.
    field: String,
    pattern: String,
}

impl Identity {
    /// Returns the name of the country plugin, for example `nigeria`.
    pub fn country(&self) -> &str {
        &self.country_plugin.manifest().name
    }

    /// Returns the type's part of the manifest.
    pub fn identity_type(&self) -> &IdentityType {
        &self.country_plugin.country().identities[self.index]
    }

    /// Returns the name, for example `nigeria.bvn`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.country(), self.identity_type().name)
    }

    /// Returns the billing item of a lookup, for example `identity.nigeria.bvn.face`.
    pub fn billing_item(&self, way: LookupMethod) -> BillingItem {
        let (name, prices) = (self.name(), self.identity_type().prices);
        let (name, default_price) = match way {
            LookupMethod::Number => (format!("identity.{name}"), prices.lookup),
            LookupMethod::Face => (format!("identity.{name}.face"), prices.face),
            LookupMethod::Document => (format!("identity.{name}.image"), prices.image),
        };
        BillingItem { name: name.into(), default_price }
    }

    /// Returns the name in error messages, for example `driver's license`.
    pub fn noun(&self) -> String {
        self.identity_type().display_name.to_lowercase()
    }

    fn supports(&self, way: LookupMethod) -> bool {
        match way {
            LookupMethod::Number => true,
            LookupMethod::Face => self.identity_type().face,
            LookupMethod::Document => self.identity_type().document,
        }
    }

    /// Returns the methods of lookups that the type supports.
    pub fn methods(&self) -> impl Iterator<Item = LookupMethod> {
        LookupMethod::ALL.into_iter().filter(|way| self.supports(*way))
    }

    /// Returns the path of a lookup, for example `/api/v1/kyc/nigeria/bvn/lookup`.
    pub fn path(&self, way: LookupMethod) -> String {
        format!("/api/v1/kyc/{}/{}/{}", self.country(), self.identity_type().path, way.suffix())
    }

    pub fn view(&self, active: bool) -> View {
        let (country, kind) = (self.country_plugin.country(), self.identity_type().clone());
        View {
            id: id_of(&self.name()),
            identity_name: self.name(),
            paths: self.methods().map(|way| self.path(way)).collect(),
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
pub fn id_of(name: &str) -> String {
    let (country, kind) = name.split_once('.').unwrap_or((name, ""));
    let mut id = fingerprint(&["identity", country, kind]);
    id.truncate(ID_LENGTH);
    id
}

fn types_of(registers: CountryPlugin) -> impl Iterator<Item = Identity> {
    let types = registers.country().identities.len();
    (0..types).map(move |index| Identity { country_plugin: registers.clone(), index })
}

/// Returns all types, by country and in the order of the manifests.
pub fn all(plugins: &Plugins) -> Vec<Identity> {
    plugins.active_country_plugins().into_iter().flat_map(types_of).collect()
}

/// Returns the type with a name such as `nigeria.bvn`; 503 if its country plugin is not ready on
/// this host.
pub fn find_by_name(plugins: &Plugins, name: &str) -> Result<Option<Identity>> {
    let Some((country, name)) = name.split_once('.') else { return Ok(None) };
    plugins.ensure_ready(country)?;
    let mut types = plugins.active_country_plugin(country).into_iter().flat_map(types_of);
    Ok(types.find(|identity| identity.identity_type().name == name))
}

/// Returns type and method of the lookup at `/api/v1/kyc/{country}/{path}`.
pub fn find_by_path(
    plugins: &Plugins,
    company_id: &CompanyId,
    country: &str,
    path: &str,
) -> Option<(Identity, LookupMethod)> {
    let way = LookupMethod::ALL.into_iter().find(|way| path.ends_with(way.suffix()))?;
    let path = path.strip_suffix(way.suffix())?.strip_suffix('/')?;
    types_of(plugins.country_plugin(country, company_id)?)
        .find(|identity| identity.identity_type().path == path && identity.supports(way))
        .map(|identity| (identity, way))
}
