//! `tollhouse publisher`.

use tollhouse_plugins::PublicKey;

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List trusted publishers and their keys
    List,
    /// Trust a publisher with these keys, which replace any former ones
    #[command(after_help = "Example:\n  tollhouse publisher trust acme acme.pub")]
    Trust {
        /// Name of the publisher
        name: String,
        /// Public keys in PEM, as `tollhouse plugin key` prints them
        #[arg(required = true, value_name = "FILE")]
        keys: Vec<PathBuf>,
    },
    /// Stop trusting a publisher; its installed plugins remain installed
    Distrust {
        name: String,
        #[command(flatten)]
        yes: Confirmation,
    },
}

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::List => {
                let publishers = host.get(&["publishers"], &()).await?;
                let keys = publishers.as_array().into_iter().flatten().flat_map(|publisher| {
                    let keys = publisher["keys"].as_array().into_iter().flatten();
                    let name = &publisher["name"];
                    keys.map(move |key| {
                        json!({ "name": name, "key": key["key"], "added_at": key["added_at"] })
                    })
                });
                let text = table(&Value::from_iter(keys), "publisher: name, key, added: added_at");
                Ok(Report::new(publishers, text))
            }
            Action::Trust { name, keys } => {
                let keys = keys.iter().map(|file| key(file)).collect::<Result<Vec<_>>>()?;
                let body = json!({ "keys": keys });
                let publisher = host.change(Method::PUT, &["publishers", &name], &body).await?;
                let message = format!("{name} is trusted: plugins that it signs are accepted");
                Ok(Report::new(publisher, message))
            }
            Action::Distrust { name, yes } => {
                yes.confirm(&format!("Stop trusting {name}?"))?;
                let gone = host.delete(&["publishers", &name]).await?;
                Ok(Report::new(gone, format!("{name} is no longer trusted")))
            }
        }
    }
}

fn key(file: &Path) -> Result<String> {
    let key = PublicKey::from_pem(&read_text(file)?);
    key.map(|key| key.to_line()).map_err(|why| file_failure(file, why))
}
