//! Settings of one-time passwords and SMS.

use clap::Args;

use crate::state::settings::OtpLimits;
use tollhouse_platform::values::phone;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "One-time passwords")]
pub struct Otp {
    /// Maximum number of codes per e-mail address or phone number of a company. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_SENDS_PER_HOUR",
        value_name = "codes per hour",
        default_value_t = 60
    )]
    pub otp_sends_per_hour: u32,
    /// Maximum number of codes per phone number of a company; the lower of this and
    /// `otp_sends_per_hour` applies. 0: no separate limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_SMS_PER_HOUR",
        value_name = "codes per hour",
        default_value_t = 10
    )]
    pub otp_sms_per_hour: u32,
    /// Maximum number of codes per company. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_COMPANY_SENDS_PER_HOUR",
        value_name = "codes per hour",
        default_value_t = 20_000
    )]
    pub otp_company_sends_per_hour: u32,
    /// Maximum number of wrong codes per identifier and type, across all codes sent. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_WRONG_PER_HOUR",
        value_name = "attempts per hour",
        default_value_t = 30
    )]
    pub otp_wrong_per_hour: u32,
    /// Codes that a company must send within an hour before a low share of verified codes raises an
    /// alarm. 0: no alarm
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_ALARM_SENDS",
        value_name = "codes per hour",
        default_value_t = 100
    )]
    pub otp_alarm_sends: u32,
    /// Share of verified codes below which that alarm is raised
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_ALARM_PERCENT",
        value_name = "percent",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(0..=100)
    )]
    pub otp_alarm_percent: u32,
    /// SMS gateways in the order in which they are tried; those without an account are skipped.
    /// Comma-separated, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_SMS_GATEWAYS",
        value_name = "names",
        value_delimiter = ',',
        default_value = "termii,africastalking,twilio"
    )]
    pub sms_gateways: Vec<String>,
    /// Countries, as ISO 3166 codes, whose phone numbers may receive SMS, for companies that set no
    /// countries. Comma-separated, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_SMS_COUNTRIES",
        value_name = "codes",
        value_delimiter = ',',
        default_value = "NG",
        value_parser = country
    )]
    pub sms_countries: Vec<String>,
}

fn country(code: &str) -> Result<String, &'static str> {
    match phone::has_numbers(code) {
        true => Ok(code.to_owned()),
        false => Err("it must be the ISO 3166 code of a country, such as NG"),
    }
}

impl Otp {
    #[must_use]
    pub fn limits(&self) -> OtpLimits {
        OtpLimits {
            sends_per_hour: self.otp_sends_per_hour.into(),
            sms_per_hour: self.otp_sms_per_hour.into(),
            company_sends_per_hour: self.otp_company_sends_per_hour.into(),
            wrong_per_hour: self.otp_wrong_per_hour.into(),
            alarm_sent: self.otp_alarm_sends.into(),
            alarm_percent: self.otp_alarm_percent.into(),
        }
    }
}
