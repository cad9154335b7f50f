//! Until when a certificate is good: the one thing that is read in it here. TLS itself is rustls'.

use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use crate::clock::Timestamp;

/// `notAfter` of a certificate in DER (RFC 5280, 4.1); `None` for what is no certificate.
pub fn expires_at(der: &[u8]) -> Option<Timestamp> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let seconds = certificate.validity().not_after.timestamp();
    Some(Timestamp(seconds.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(until: (i32, u8, u8)) -> Vec<u8> {
        let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        parameters.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms_of_time() {
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
    fn what_is_no_certificate_has_no_end() {
        let whole = certificate((2026, 11, 21));
        for length in 0..whole.len() {
            assert_eq!(expires_at(&whole[..length]), None, "{length}");
        }
        assert_eq!(expires_at(b"once upon a time"), None);
    }
}
