//! Parts of a response, kept as raw JSON.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::types::Fault;

/// A part of a response as raw JSON text, so that amounts are read exactly and never pass through a
/// float. A field of this type needs `#[serde(default)]` if it may be absent; it is `null` then.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Deserializes the JSON. Any other shape is a fault of the upstream: `unavailable`, code
    /// `unexpected-answer`. The message never quotes the data.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.0.get()).map_err(|error| {
            let column = error.column();
            Fault::unavailable(format!("the response data is not as expected (column {column})"))
                .with_code("unexpected-answer")
        })
    }

    /// Returns the raw JSON text.
    pub(crate) fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the JSON as a value, for display; read amounts with [`RawJson::read`].
    pub fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Major;

    #[derive(Deserialize)]
    struct Envelope {
        #[serde(default)]
        data: RawJson,
    }

    fn data(json: &str) -> RawJson {
        serde_json::from_str::<Envelope>(json).unwrap().data
    }

    #[test]
    fn numbers_keep_their_precision() {
        let value = data(r#"{"data": [ 4503599627370497.01 ]}"#);
        let read: Vec<Major> = value.read().unwrap();
        assert_eq!(read[0].hundredths(), 450_359_962_737_049_701);
        assert!(value.value().is_array());
    }

    #[test]
    fn absent_data_is_null() {
        for json in ["{}", r#"{"data":null}"#] {
            assert!(data(json).value().is_null());
        }
    }

    #[test]
    fn unexpected_data_is_not_quoted() {
        let fault = data(r#"{"data":"Ada Obi"}"#).read::<Vec<u8>>().unwrap_err();
        assert_eq!((fault.code.as_str(), fault.retryable), ("unexpected-answer", true));
        assert!(!fault.message.contains("Ada"));
    }
}
