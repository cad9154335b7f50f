//! Loads the examples of a manifest into the fake host, as `tollhouse plugin bench` does.

use serde_json::Value;

use super::FakeHost;

/// The values of every secret of the example account, and of settings without a default.
const SECRET: &str = "example-secret";
const SETTING: &str = "example";
const URL_SETTING: &str = "https://provider.example";

impl FakeHost {
    /// Loads a complete manifest: the defaults of its settings, an account of example values, and
    /// the responses in its examples.
    pub fn examples(self, json: &str) -> FakeHost {
        let manifest: Value = serde_json::from_str(json).expect("the manifest is not JSON");
        let mut host = self;
        host.bind(&manifest);
        let bound = manifest["secrets"].as_object().into_iter().flatten();
        let unbound = manifest["secrets"].as_array().into_iter().flatten();
        let names = bound.map(|(name, _)| name.as_str());
        for name in names.chain(unbound.filter_map(Value::as_str)) {
            host = host.secret(name, SECRET);
        }
        for (name, setting) in manifest["settings"].as_object().into_iter().flatten() {
            let value = if setting["kind"] == "url" { URL_SETTING } else { SETTING };
            host = host.setting(name, setting["default"].as_str().unwrap_or(value));
        }
        for (name, value) in manifest["examples"]["credentials"].as_object().into_iter().flatten() {
            let value = value.as_str().expect("example values are strings");
            host = match manifest["settings"].get(name) {
                Some(_) => host.setting(name, value),
                None => host.secret(name, value),
            };
        }
        for example in manifest["examples"]["answers"].as_array().into_iter().flatten() {
            let to = example["to"].as_str().and_then(|to| to.split_once(' '));
            let (method, url) = to.expect("the key `to` of an example has a method and a URL");
            let status = example["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            host = host.answer(method, url, status.unwrap_or(200), example["body"].clone());
        }
        host
    }
}

/// Returns headers and body of the manifest's example webhook.
pub fn example_notification(json: &str) -> (Vec<(String, String)>, Vec<u8>) {
    let manifest: Value = serde_json::from_str(json).expect("the manifest is not JSON");
    let notification = &manifest["examples"]["notification"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let headers = notification["headers"].as_object().into_iter().flatten();
    let headers = headers.map(|(name, value)| (name.clone(), text(value))).collect();
    (headers, text(&notification["body"]).into_bytes())
}
