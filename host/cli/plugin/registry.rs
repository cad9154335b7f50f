//! Registries of components: OCI artifacts in the layout that other WebAssembly tools use (CNCF TAG
//! Runtime, "Wasm OCI Artifact Layout").

use std::collections::BTreeMap;

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential};
use futures::StreamExt;
use oci_client::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol, Config, ImageLayer},
    errors::OciDistributionError,
    manifest::OciImageManifest,
    secrets::RegistryAuth,
};
use tollhouse_platform::crypto::tls;
use tollhouse_plugins::{Limits, Surface};

use crate::prelude::*;

pub const SCHEME: &str = "oci://";

const COMPONENT: &str = "application/wasm";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// Access to registries, with credentials from Docker's configuration (`docker login`).
#[derive(Args)]
pub struct Registry {
    /// Use plain HTTP, for a registry on this machine
    #[arg(long)]
    plain_http: bool,
}

impl Registry {
    /// Downloads a component up to the size limit of a host, and verifies its digest.
    pub async fn pull(&self, name: &str) -> Result<Vec<u8>> {
        let (reference, client) = (reference(name)?, self.client());
        let auth = credentials(&reference)?;
        let wrong = |error: OciDistributionError| registry_failure(name, &error);
        let (manifest, _) = client.pull_image_manifest(&reference, &auth).await.map_err(wrong)?;
        let [layer] = &manifest.layers[..] else {
            return Err(Failure::refused(format!(
                "{name} is not a component: it does not have exactly one layer"
            )));
        };
        if layer.media_type != COMPONENT {
            let what = format!("{name} is not a component: its type is {}", layer.media_type);
            return Err(Failure::refused(what));
        }
        let most = Limits::default().component_bytes;
        let mut blob = client.pull_blob_stream(&reference, layer).await.map_err(wrong)?.stream;
        let mut component = Vec::new();
        while let Some(bytes) = blob.next().await {
            let bytes = bytes.map_err(|error| wrong(error.into()))?;
            if component.len() + bytes.len() > most {
                return Err(Failure::refused(format!("{name} is larger than {most} bytes")));
            }
            component.extend_from_slice(&bytes);
        }
        Ok(component)
    }

    /// Uploads a component and returns a reference pinned to its digest.
    pub async fn push(&self, name: &str, component: Vec<u8>, plugin: &Manifest) -> Result<String> {
        let (reference, client) = (reference(name)?, self.client());
        let auth = credentials(&reference)?;
        let surface = Surface::of(&component).map_err(Failure::refused)?;
        let layer = ImageLayer::new(component, COMPONENT.to_owned(), None);
        let config = json!({
            "created": Clock::system().now(),
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer.sha256_digest()],
            "component": { "imports": surface.imports, "exports": surface.exports },
        });
        let config = Config::new(config.to_string(), CONFIG.to_owned(), None);
        let about = BTreeMap::from([
            ("org.opencontainers.image.title".to_owned(), plugin.name.clone()),
            ("org.opencontainers.image.version".to_owned(), plugin.version.to_string()),
        ]);
        let layers = [layer];
        let manifest = OciImageManifest::build(&layers, &config, Some(about));
        let wrong = |error: OciDistributionError| registry_failure(name, &error);
        client.push(&reference, &layers, config, &auth, Some(manifest)).await.map_err(wrong)?;
        let digest = client.fetch_manifest_digest(&reference, &auth).await.map_err(wrong)?;
        Ok(format!("{SCHEME}{}/{}@{digest}", reference.registry(), reference.repository()))
    }

    fn client(&self) -> Client {
        tls::install_provider();
        let protocol = match self.plain_http {
            true => ClientProtocol::Http,
            false => ClientProtocol::Https,
        };
        Client::new(ClientConfig { protocol, ..ClientConfig::default() })
    }
}

fn reference(name: &str) -> Result<Reference> {
    let plain = name.strip_prefix(SCHEME).ok_or_else(|| {
        Failure::usage(format!(
            "{name} must have the form {SCHEME}registry.example/plugins/acme:1.0.0"
        ))
    })?;
    plain.parse().map_err(|error| Failure::usage(format!("{name}: {error}")))
}

fn credentials(reference: &Reference) -> Result<RegistryAuth> {
    use CredentialRetrievalError::{ConfigNotFound, ConfigReadError, NoCredentialConfigured};
    Ok(match get_credential(reference.resolve_registry()) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            RegistryAuth::Basic(user, password)
        }
        Ok(DockerCredential::IdentityToken(token)) => RegistryAuth::Bearer(token),
        Err(ConfigNotFound | ConfigReadError | NoCredentialConfigured) => RegistryAuth::Anonymous,
        Err(error) => {
            let registry = reference.registry();
            let what = format!("the credentials for {registry} cannot be read: {error}");
            return Err(Failure::usage(what));
        }
    })
}

/// Classifies an error: rejected by the registry, or registry unreachable.
fn registry_failure(name: &str, error: &OciDistributionError) -> Failure {
    let message = format!("{name}: {}", chain(error));
    match error {
        OciDistributionError::ServerError { code: 401 | 403, .. }
        | OciDistributionError::UnauthorizedError { .. }
        | OciDistributionError::AuthenticationFailure(_) => Failure::refused(format!(
            "{name}: the registry rejected the credentials in Docker's configuration: \
             log in with `docker login`"
        )),
        OciDistributionError::ServerError { code: 500.., .. }
        | OciDistributionError::RequestError(_) => Failure::unreachable(message),
        _ => Failure::refused(message),
    }
}
