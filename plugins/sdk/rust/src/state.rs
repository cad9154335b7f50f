//! The state that the host stores for a plugin about a payment or refund, as JSON. The interfaces
//! `sessions` and `session_refunds` return and receive it.

use serde::{Serialize, de::DeserializeOwned};

/// Encodes a state, or the data of a notification. The result may have at most 4 KiB.
///
/// # Panics
/// If the state has a map whose keys are not strings.
pub fn encode<T: Serialize>(state: &T) -> Vec<u8> {
    serde_json::to_vec(state).expect("a state with string keys serializes")
}

/// Decodes a state. Returns `None` if there is none, or if it has another format, because another
/// version of the plugin wrote it.
pub fn decode<T: DeserializeOwned>(state: Option<&Vec<u8>>) -> Option<T> {
    serde_json::from_slice(state?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_decoded_if_it_has_the_expected_form() {
        let bytes = encode(&("ws_CO_1", 7));
        assert_eq!(decode(Some(&bytes)), Some(("ws_CO_1".to_owned(), 7)));
        assert_eq!(decode::<u8>(Some(&bytes)), None);
        assert_eq!(decode::<u8>(None), None);
    }
}
