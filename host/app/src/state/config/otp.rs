//! Settings of one-time passwords and SMS.

use tollhouse_platform::{config::settings, values::phone};

settings! {
    "One-time passwords" Otp;
    /// Maximum number of codes per e-mail address or phone number of a company. 0: no limit
    otp_sends_per_hour: u32 = 60, "TOLLHOUSE_OTP_SENDS_PER_HOUR", "codes per hour";
    /// Maximum number of codes per phone number of a company; the lower of this and
    /// `otp_sends_per_hour` applies. 0: no separate limit
    otp_sms_per_hour: u32 = 10, "TOLLHOUSE_OTP_SMS_PER_HOUR", "codes per hour";
    /// Maximum number of codes per company. 0: no limit
    otp_company_sends_per_hour: u32 = 20_000, "TOLLHOUSE_OTP_COMPANY_SENDS_PER_HOUR",
        "codes per hour";
    /// Maximum number of wrong codes per identifier and type, across all codes sent. 0: no limit
    otp_wrong_per_hour: u32 = 30, "TOLLHOUSE_OTP_WRONG_PER_HOUR", "attempts per hour";
    /// Codes that a company must send within an hour before a low share of verified codes raises an
    /// alarm. 0: no alarm
    otp_alarm_sends: u32 = 100, "TOLLHOUSE_OTP_ALARM_SENDS", "codes per hour";
    /// Share of verified codes below which that alarm is raised
    otp_alarm_percent: u32 [0..=100] = 20, "TOLLHOUSE_OTP_ALARM_PERCENT", "percent";
    /// SMS gateways in the order in which they are tried; those without an account are skipped.
    /// Comma-separated, or repeated
    sms_gateways: Vec<String>, "TOLLHOUSE_SMS_GATEWAYS", "names", value_delimiter = ',',
        default_value = "termii,africastalking,twilio";
    /// Countries, as ISO 3166 codes, whose phone numbers may receive SMS, for companies that set no
    /// countries. Comma-separated, or repeated
    sms_countries: Vec<String>, "TOLLHOUSE_SMS_COUNTRIES", "codes", value_delimiter = ',',
        default_value = "NG", value_parser = country;
}

fn country(code: &str) -> Result<String, &'static str> {
    match phone::has_numbers(code) {
        true => Ok(code.to_owned()),
        false => Err("it must be the ISO 3166 code of a country, such as NG"),
    }
}
