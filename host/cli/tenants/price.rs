//! `tollhouse price`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::{
    client::host::{HostAccess, HostClient},
    terminal::{
        failure::Failure,
        output::{Report, left, money, right, text},
    },
};

#[derive(Args)]
pub struct Price {
    /// The company's id, for its own plan; without it, the default plan
    #[arg(long, global = true, value_name = "COMPANY")]
    company: Option<String>,
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show prices and the plan of each
    List,
    /// Set the named prices
    #[command(after_help = "\
An empty price removes it: a company then pays the default plan's price, and without one the price that the plugin declares, or 0.

Examples:
  tollhouse price set otp.email=2.5 otp.sms=4 identity.nigeria.bvn=100
  tollhouse price set otp.sms=3.75 otp.email= --company 6b018eed9f8a1c2b3d4e5f60")]
    Set {
        /// Price in the major unit, with at most two decimals
        #[arg(required = true, value_name = "ITEM=PRICE", value_parser = assignment)]
        prices: Vec<(String, Value)>,
    },
}

fn assignment(text: &str) -> Result<(String, Value), String> {
    let (item, price) =
        text.split_once('=').ok_or("it must have the form ITEM=PRICE, like otp.email=2.5")?;
    Ok((item.to_owned(), amount(price)?))
}

/// Parses a number; an empty text gives `null`.
pub fn amount(text: &str) -> Result<Value, String> {
    match text {
        "" => Ok(Value::Null),
        text => match text.parse() {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => Err(format!("{text} is not a number")),
        },
    }
}

impl Price {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        let path = match &self.company {
            Some(company) => vec!["companies", company, "prices"],
            None => vec!["prices"],
        };
        let prices = match self.action {
            Action::List => host.get(&path, &[]).await?,
            Action::Set { prices } => {
                let body = Value::Object(Map::from_iter(prices));
                host.send_json(Method::PATCH, &path, &body).await?
            }
        };
        Ok(report(prices))
    }
}

fn report(prices: Value) -> Report {
    let each = prices["prices"].as_object().into_iter().flatten();
    let each = each.map(|(item, price)| {
        json!({ "item": item, "price": price["price"], "plan": price["plan"], "currency": prices["currency"] })
    });
    let columns = [
        left("ITEM", |v| text(&v["item"])),
        right("PRICE", |v| money(&v["price"], &v["currency"])),
        left("PLAN", |v| text(&v["plan"])),
    ];
    let each = Value::from_iter(each);
    Report::table(prices, &each, &columns)
}
