//! Until when a certificate is good: the one thing that is read in it here. TLS itself is rustls'.

use chrono::NaiveDateTime;

use crate::clock::Timestamp;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// `notAfter` of a certificate in DER (RFC 5280, 4.1); `None` for what is no certificate.
pub fn expires_at(der: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = expect(SEQUENCE, der)?;
    let (to_be_signed, _) = expect(SEQUENCE, certificate)?;
    let rest = expect(VERSION, to_be_signed).map_or(to_be_signed, |(_, rest)| rest);
    let (_serial_number, rest) = expect(INTEGER, rest)?;
    let (_algorithm, rest) = expect(SEQUENCE, rest)?;
    let (_issuer, rest) = expect(SEQUENCE, rest)?;
    let (validity, _) = expect(SEQUENCE, rest)?;
    let (_, _not_before, not_after) = element(validity)?;
    let (tag, text, _) = element(not_after)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// The content of the element that `bytes` begin with, and what comes after it.
fn expect(expected: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, ..)| *tag == expected).map(|(_, content, rest)| (content, rest))
}

/// Tag and content of the element that `bytes` begin with, and what comes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, length], rest) = bytes.split_first_chunk()?;
    // Below 128 it is the length itself, else the number of bytes that hold it.
    let (length, rest) = match length {
        0..0x80 => (usize::from(length), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (
                digits.iter().try_fold(0_usize, |n, digit| {
                    n.checked_mul(256)?.checked_add((*digit).into())
                })?,
                rest,
            )
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Years of two digits are 1950 to 2049 (RFC 5280, 4.1.2.5.1).
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    let text = match tag {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME => format!("{}{text}", if text < "50" { "20" } else { "19" }),
        _ => return None,
    };
    let at = NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok()?;
    Some(Timestamp(at.and_utc().timestamp_millis()))
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
            ((2026, 11, 21), "2026-11-21T00:00:00Z"),
            ((2049, 12, 31), "2049-12-31T00:00:00Z"),
            ((2050, 1, 1), "2050-01-01T00:00:00Z"),
            ((4096, 1, 1), "4096-01-01T00:00:00Z"),
        ] {
            assert_eq!(expires_at(&certificate(until)), Timestamp::parse(text), "{text}");
        }
        assert_eq!(time(UTC_TIME, "991231235959Z"), Timestamp::parse("1999-12-31T23:59:59Z"));
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let whole = certificate((2026, 11, 21));
        for length in 0..whole.len() {
            assert_eq!(expires_at(&whole[..length]), None, "{length}");
        }
        assert_eq!(expires_at(b"once upon a time"), None);
        assert_eq!(expires_at(&[SEQUENCE, 0xff, 0xff]), None);
        assert_eq!(expires_at(&[[SEQUENCE, 0x89].as_slice(), &[0xff; 9]].concat()), None);
    }
}
