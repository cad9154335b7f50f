//! Checks of certificates: expiry, and acceptance by clients. rustls does TLS itself.

use x509_parser::{certificate::X509Certificate, extensions::GeneralName, prelude::FromDer};

use tollhouse_platform::clock::Timestamp;

/// Returns `notAfter` of a DER certificate (RFC 5280, 4.1); `None` if it is not a certificate.
pub fn expires_at(der: &[u8]) -> Option<Timestamp> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let seconds = certificate.validity().not_after.timestamp();
    Some(Timestamp(seconds.saturating_mul(1_000)))
}

/// Returns why clients refuse a server certificate (RFC 5280, 4.2.1; RFC 9525), and the remedy.
/// `None` also if it cannot be parsed: TLS refuses that itself.
pub fn rejection_reason(der: &[u8]) -> Option<&'static str> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    if certificate.is_ca() {
        return Some(
            "this is a CA certificate (CA:TRUE), which clients reject as a server certificate: put the host's certificate, signed by this CA, before it (see docs/OPERATING.md)",
        );
    }
    let names = certificate.subject_alternative_name().ok()?;
    let is_name =
        |name: &GeneralName| matches!(name, GeneralName::DNSName(_) | GeneralName::IPAddress(_));
    if !names.is_some_and(|names| names.value.general_names.iter().any(is_name)) {
        return Some(
            "this certificate has no subject alternative name with a host name or an IP address, so clients reject it: create one with subjectAltName=DNS:… or IP:… (see docs/OPERATING.md)",
        );
    }
    let purposes = certificate.extended_key_usage().ok()?;
    if purposes.is_some_and(|purposes| !purposes.value.server_auth && !purposes.value.any) {
        return Some(
            "this certificate is not for servers, so clients reject it: create one with extendedKeyUsage=serverAuth",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa};

    use super::*;

    fn certificate(until: (i32, u8, u8)) -> Vec<u8> {
        let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn expiry_is_read_from_both_time_formats() {
        for (until, text) in [
            ((1999, 12, 31), "1999-12-31T00:00:00Z"),
            ((2026, 11, 21), "2026-11-21T00:00:00Z"),
            ((2049, 12, 31), "2049-12-31T00:00:00Z"),
            ((2050, 1, 1), "2050-01-01T00:00:00Z"),
            ((4096, 1, 1), "4096-01-01T00:00:00Z"),
        ] {
            assert_eq!(expires_at(&certificate(until)), Timestamp::parse(text), "{text}");
        }
    }

    #[test]
    fn invalid_certificates_have_no_expiry() {
        let whole = certificate((2026, 11, 21));
        for length in 0..whole.len() {
            assert_eq!(expires_at(&whole[..length]), None, "{length}");
            assert_eq!(rejection_reason(&whole[..length]), None, "{length}");
        }
        assert_eq!(expires_at(b"once upon a time"), None);
    }

    #[test]
    fn certificates_that_clients_refuse_are_detected() {
        use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
        let ca = IsCa::Ca(BasicConstraints::Unconstrained);
        for (names, is_ca, purposes, refused) in [
            (&["localhost"][..], IsCa::NoCa, &[][..], None),
            (&["127.0.0.1"], IsCa::ExplicitNoCa, &[ServerAuth, ClientAuth], None),
            (&["localhost"], IsCa::NoCa, &[Any], None),
            (&["localhost"], ca, &[], Some("CA certificate")),
            (&[], IsCa::NoCa, &[], Some("no subject alternative name")),
            (&["localhost"], IsCa::NoCa, &[ClientAuth], Some("not for servers")),
        ] {
            let names = names.iter().copied().map(str::to_owned).collect::<Vec<_>>();
            let mut parameters = rcgen::CertificateParams::new(names).unwrap();
            parameters.is_ca = is_ca;
            parameters.extended_key_usages = purposes.to_vec();
            let key = rcgen::KeyPair::generate().unwrap();
            let found = rejection_reason(parameters.self_signed(&key).unwrap().der());
            match (found, refused) {
                (None, None) => {}
                (Some(found), Some(part)) if found.contains(part) => {}
                (found, refused) => panic!("{found:?} in place of {refused:?}"),
            }
        }
    }
}
