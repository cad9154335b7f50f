//! One-time passwords and the text messages that carry them.

use clap::Args;

use crate::{otp::Limits, phone};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "One-time passwords")]
pub struct Otp {
    /// How many codes may be sent to one e-mail address or phone number of a company. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_SENDS_PER_HOUR",
        value_name = "codes per hour",
        default_value_t = 60
    )]
    pub otp_sends_per_hour: u32,
    /// How many codes may be sent to one phone number of a company; the lower of this and `otp_sends_per_hour` counts. 0: no limit
    /// of its own
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_SMS_PER_HOUR",
        value_name = "codes per hour",
        default_value_t = 10
    )]
    pub otp_sms_per_hour: u32,
    /// How many codes a company may send in all. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_COMPANY_SENDS_PER_HOUR",
        value_name = "codes per hour",
        default_value_t = 20_000
    )]
    pub otp_company_sends_per_hour: u32,
    /// How many wrong codes may be tried for one identifier and type, however often a new one is sent. 0: no limit
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_WRONG_PER_HOUR",
        value_name = "tries per hour",
        default_value_t = 30
    )]
    pub otp_wrong_per_hour: u32,
    /// An alarm is raised when a company sends at least so many within an hour and few of them are verified. 0: never
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_ALARM_SENDS",
        value_name = "codes per hour",
        default_value_t = 100
    )]
    pub otp_alarm_sends: u32,
    /// Few: less than this
    #[arg(
        long,
        env = "TOLLHOUSE_OTP_ALARM_PERCENT",
        value_name = "percent",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(0..=100)
    )]
    pub otp_alarm_percent: u32,
    /// The gateways for text messages, in the order in which they are asked; those without an account are passed over. Commas
    /// between, or repeated
    #[arg(
        long,
        env = "TOLLHOUSE_SMS_GATEWAYS",
        value_name = "names",
        value_delimiter = ',',
        default_value = "termii,africastalking,twilio"
    )]
    pub sms_gateways: Vec<String>,
    /// The countries whose numbers text messages may go to, as ISO 3166 codes, for companies that name none of their own. Commas
    /// between, or repeated
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
    pub fn limits(&self) -> Limits {
        Limits {
            sends_per_hour: self.otp_sends_per_hour.into(),
            sms_per_hour: self.otp_sms_per_hour.into(),
            company_sends_per_hour: self.otp_company_sends_per_hour.into(),
            wrong_per_hour: self.otp_wrong_per_hour.into(),
            alarm_sent: self.otp_alarm_sends.into(),
            alarm_percent: self.otp_alarm_percent.into(),
        }
    }
}
