//! Explains TLS failures and how to fix them.

use std::path::Path;

use rustls::{CertificateError, Error};
use url::Url;

/// Explains a problem with the certificate of the host at `at`. `None` for other failures.
/// `ca_file` is the setting `internal_ca_file`.
pub fn advice(error: &Error, at: &Url, ca_file: Option<&Path>) -> Option<String> {
    let error = match error {
        Error::InvalidCertificate(error) => error,
        Error::InvalidMessage(_) => {
            return Some("it does not answer in TLS: if it serves plain HTTP, internal_url begins with http://".into());
        }
        _ => return None,
    };
    let host = at.host_str().unwrap_or_default();
    Some(match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match ca_file {
            None => "its certificate is signed by a CA that is not trusted here: name the CA's certificate in internal_ca_file".into(),
            Some(file) => format!(
                "its certificate is not signed by a CA in internal_ca_file {}, nor by one that this system trusts: name the \
                 certificate of the CA that signed it",
                file.display()
            ),
        },
        CertificateError::NotValidForNameContext { presented, .. } => format!(
            "its certificate is not valid for {host}, but for {}: use such a name in internal_url, or make a certificate \
             whose subject alternative names have {host}",
            presented.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ")
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: put a new one in its place, which the host takes over by itself".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: are the clocks of both machines right?".into()
        }
        // rustls has no variant for this error or the next one.
        CertificateError::Other(error) if format!("{error:?}").contains("CaUsedAsEndEntity") => format!(
            "its certificate is a CA certificate, which is refused as a server's: the host needs a certificate for {host} that \
             this CA has signed, and internal_ca_file names the CA's; docs/OPERATING.md says how to make them"
        ),
        CertificateError::Other(error) if format!("{error:?}").contains("EkuError") => {
            "its certificate is not for servers: make one with extendedKeyUsage=serverAuth".into()
        }
        _ => return None,
    })
}

/// Extracts the name from rustls's debug format: `DnsName("api.example.com")`.
fn plain(name: &str) -> &str {
    let within = name.split_once('(').map_or(name, |(_, within)| within);
    within.trim_end_matches(')').trim_matches('"')
}
