//! `face_data`: the result of a face comparison.

use serde_json::Value;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::normal;
use tollhouse_plugin::types::Fault;

use crate::refusal;

/// Minimum confidence of a match, in percent, if Prembly returns only a confidence.
const THRESHOLD: f64 = 90.0;

/// Returns the comparison. If no face was found, the fault is `invalid` and names the image.
pub(crate) fn comparison(face: &Value) -> Result<Comparison, Fault> {
    let status = parse_bool(&face["status"]);
    let confidence = confidence(&face["confidence"]);
    let nothing = confidence.is_none_or(|confidence| confidence == 0.0);
    if nothing && status != Some(true) && reports_no_face(&face["message"]) {
        return Err(refusal::no_face());
    }
    if confidence.is_none() && status.is_none() {
        return Err(refusal::unexpected_response("Prembly returned no comparison"));
    }
    let percent = to_percent(confidence.unwrap_or_default(), status.is_some());
    Ok(normal::comparison(status.unwrap_or(percent >= THRESHOLD), percent))
}

/// Converts a confidence to percent: some responses use a scale of 0 to 1, others 0 to 100.
fn to_percent(confidence: f64, status_known: bool) -> f64 {
    if status_known && confidence <= 1.0 { confidence * 100.0 } else { confidence }
}

fn confidence(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().trim_end_matches('%').trim_end().parse().ok(),
        _ => None,
    }
}

fn parse_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_lowercase().parse().ok(),
        _ => None,
    }
}

fn reports_no_face(words: &Value) -> bool {
    let words = words.as_str().unwrap_or_default().to_lowercase();
    ["no face", "face not", "not detect", "multiple face"].iter().any(|no| words.contains(no))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_scales_become_hundredths_of_a_percent() {
        for (face, matches, hundredths) in [
            (json!({"status": true, "confidence": 99.9}), true, 9_990),
            (json!({"status": true, "confidence": 99.90274}), true, 9_990),
            (json!({"status": true, "confidence": 0.0404}), true, 404),
            (json!({"status": false, "confidence": 0.0404}), false, 404),
            (json!({"status": true, "confidence": 1.0}), true, 10_000),
            (json!({"status": true, "confidence": 1.01}), true, 101),
            (json!({"status": true, "confidence": "98.5%"}), true, 9_850),
            (json!({"status": "true", "confidence": "0.985"}), true, 9_850),
            (json!({"status": true, "confidence": 104.2}), true, 10_000),
            (json!({"status": false, "confidence": -0.2}), false, 0),
            (json!({"status": false, "confidence": "NaN"}), false, 0),
            (json!({"status": true}), true, 0),
            (json!({"status": false, "message": "Face Mismatch"}), false, 0),
            // Without `status`, the scale is unknown, so 0 to 100 is assumed.
            (json!({"confidence": 0.99}), false, 99),
            (json!({"confidence": 90}), true, 9_000),
            (json!({"confidence": 89.99}), false, 8_999),
        ] {
            let found = comparison(&face).unwrap();
            assert_eq!((found.matches, found.confidence), (matches, hundredths), "{face}");
        }
    }

    #[test]
    fn without_a_face_there_is_no_comparison() {
        for words in ["No face detected", "Face not found on the selfie", "Multiple faces seen"] {
            let face = json!({"status": false, "message": words});
            assert_eq!(comparison(&face).unwrap_err().field(), Some("image"), "{words}");
            let face = json!({"status": false, "message": words, "confidence": 0.0});
            assert_eq!(comparison(&face).unwrap_err().field(), Some("image"), "{words}");
        }
        for face in [json!({}), json!(null), json!({"message": "Face Match"})] {
            assert_eq!(comparison(&face).unwrap_err().code, "unexpected-answer", "{face}");
        }
    }
}
