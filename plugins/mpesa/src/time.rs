//! Timestamps of Daraja: `YYYYMMDDHHmmss` in East Africa Time, which is UTC+3 all year.

use tollhouse_plugin::normal;

const EAT_MINUTES: i64 = 180;

/// Returns the time of the call.
pub(crate) fn now() -> String {
    from_local(&normal::local_now(EAT_MINUTES))
}

fn from_local(time: &str) -> String {
    time.replace(['-', 'T', ':'], "")
}

/// Returns a timestamp as RFC 3339 in UTC; `None` if it is malformed.
pub(crate) fn to_rfc3339(timestamp: &str) -> Option<String> {
    if timestamp.len() != 14 || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (day, clock) = timestamp.split_at(8);
    let day = format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..]);
    let clock = format!("{}:{}:{}", &clock[..2], &clock[2..4], &clock[4..]);
    normal::moment(&format!("{day}T{clock}").into(), EAT_MINUTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_in_east_africa_time() {
        for (local, timestamp, utc) in [
            ("1970-01-01T03:00:00", "19700101030000", "1970-01-01T00:00:00Z"),
            ("2019-12-19T10:21:15", "20191219102115", "2019-12-19T07:21:15Z"),
            ("2024-02-29T23:59:59", "20240229235959", "2024-02-29T20:59:59Z"),
            ("2024-03-01T00:00:00", "20240301000000", "2024-02-29T21:00:00Z"),
            ("2100-01-01T02:59:59", "21000101025959", "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(from_local(local), timestamp);
            assert_eq!(to_rfc3339(timestamp).as_deref(), Some(utc));
        }
        for bad in ["", "2019121910211", "20191319102115", "2019121910211x", "20191219242115"] {
            assert_eq!(to_rfc3339(bad), None, "{bad}");
        }
    }
}
