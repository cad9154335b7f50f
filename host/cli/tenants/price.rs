//! `tollhouse price`.

use crate::prelude::*;

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
    /// List prices and the plan each comes from
    List,
    /// Set the given prices; others are unchanged
    #[command(after_help = "\
An empty value removes the price: the default plan's price applies, else the price the plugin
declares, else 0.

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
        text => text.parse().map(Value::Number).map_err(|_| format!("{text} is not a number")),
    }
}

impl Price {
    pub async fn run(self) -> Result {
        let host = HostClient::new(&self.access)?;
        let path = scope(self.company.as_deref(), "prices");
        let prices = match self.action {
            Action::List => host.get(&path, &()).await?,
            Action::Set { prices } => {
                host.change(Method::PATCH, &path, &Value::from_iter(prices)).await?
            }
        };
        let each = prices["prices"].as_object().into_iter().flatten();
        let each = each.map(|(item, price)| {
            json!({ "item": item, "price": price["price"], "plan": price["plan"], "currency": prices["currency"] })
        });
        let text = table(&Value::from_iter(each), "item, price as money, plan");
        Ok(Report::new(prices, text))
    }
}
