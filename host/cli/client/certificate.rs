//! Explains TLS failures and how to fix them.

use std::path::Path;

use rustls::{CertificateError, Error};
use url::Url;

/// Explains a problem with the certificate of the host at `at`. `None` for other failures.
/// `ca_file` is the setting `internal_ca_file`.
pub fn explain_tls_error(error: &Error, at: &Url, ca_file: Option<&Path>) -> Option<String> {
    let error = match error {
        Error::InvalidCertificate(error) => error,
        Error::InvalidMessage(_) => {
            return Some(
                "it does not use TLS: if it serves plain HTTP, set internal_url to an http:// URL"
                    .into(),
            );
        }
        _ => return None,
    };
    let host = at.host_str().unwrap_or_default();
    Some(match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match ca_file {
            None => "its certificate is signed by a CA that is not trusted here: \
                     set internal_ca_file to the CA's certificate"
                .into(),
            Some(file) => format!(
                "its certificate is not signed by a CA in internal_ca_file {}, \
                 nor by one this system trusts: set internal_ca_file to the certificate of \
                 the CA that signed the host's certificate",
                file.display()
            ),
        },
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "its certificate is not valid for {host}, but for {}: use one of these names in \
             internal_url, or create a certificate with {host} in its subject alternative names",
            presented.iter().map(|name| name_in_debug_format(name)).collect::<Vec<_>>().join(", ")
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: \
             replace the certificate file; the host reloads it without a restart"
                .into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: check the clocks of both machines".into()
        }
        // rustls has no variant for this error or the next one.
        CertificateError::Other(error) if format!("{error:?}").contains("CaUsedAsEndEntity") => {
            format!(
                "its certificate is a CA certificate, which is rejected as a server certificate: \
                 give the host a certificate for {host} signed by this CA, and set \
                 internal_ca_file to the CA certificate (see docs/OPERATING.md)"
            )
        }
        CertificateError::Other(error) if format!("{error:?}").contains("EkuError") => {
            "its certificate is not for servers: create one with extendedKeyUsage=serverAuth".into()
        }
        _ => return None,
    })
}

/// Extracts the name from rustls's debug format: `DnsName("api.example.com")`.
fn name_in_debug_format(name: &str) -> &str {
    let within = name.split_once('(').map_or(name, |(_, within)| within);
    within.trim_end_matches(')').trim_matches('"')
}
