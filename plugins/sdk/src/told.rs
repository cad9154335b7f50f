//! What an upstream told, kept as it wrote it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::types::Fault;

/// A part of an answer, as JSON text: read into a type, amounts are what was written and not what a float makes of it. A field
/// of this type needs `#[serde(default)]` where it may be absent; it is `null` then.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Told(Box<RawValue>);

impl Told {
    /// Reads it into a type. When it is something else the upstream is out of order: `unavailable`, code `unexpected-answer`.
    /// Nothing of it is quoted.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.0.get()).map_err(|error| {
            let column = error.column();
            Fault::unavailable(format!("the answer's data are not as expected (column {column})"))
                .with_code("unexpected-answer")
        })
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        self.0.get()
    }

    /// As a value, to be shown; amounts are read by [`Told::read`].
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
        data: Told,
    }

    fn data(json: &str) -> Told {
        serde_json::from_str::<Envelope>(json).unwrap().data
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let told = data(r#"{"data": [ 4503599627370497.01 ]}"#);
        let read: Vec<Major> = told.read().unwrap();
        assert_eq!(read[0].minor(), 450_359_962_737_049_701);
        assert!(told.value().is_array());
    }

    #[test]
    fn absent_data_are_null() {
        for json in ["{}", r#"{"data":null}"#] {
            assert!(data(json).value().is_null());
        }
    }

    #[test]
    fn what_is_unexpected_is_not_quoted() {
        let fault = data(r#"{"data":"Ada Obi"}"#).read::<Vec<u8>>().unwrap_err();
        assert_eq!((fault.code.as_str(), fault.retryable), ("unexpected-answer", true));
        assert!(!fault.message.contains("Ada"));
    }
}
