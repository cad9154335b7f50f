//! The response envelope, and the places of the record and the face comparison in it.

use serde_json::{Map, Value};
use tollhouse_plugin::http::Response;
use tollhouse_plugin::identity_face::Comparison;
use tollhouse_plugin::normal;
use tollhouse_plugin::record::Record;
use tollhouse_plugin::types::Fault;

use crate::{face, refusal};

/// Fields of the envelope with a record. Alternatively, `data` has the record or one of these.
const RECORDS: [&str; 4] = ["bvn_data", "nin_data", "frsc_data", "vc_data"];
const DATA: &str = "data";
const FACE: &str = "face_data";

const WATCH_LISTED: &str = "07";

/// A successful response.
#[derive(Debug)]
pub struct LookupResult {
    /// Never empty.
    pub record: Record,
    face: Option<Value>,
}

impl LookupResult {
    /// Returns the comparison of the selfie with the photo on record.
    pub fn comparison(&self) -> Result<Comparison, Fault> {
        face::comparison(self.face.as_ref().unwrap_or(&Value::Null))
    }
}

pub(crate) fn parse(response: &Response, with_image: bool) -> Result<LookupResult, Fault> {
    let body: Option<Map<String, Value>> = response.json().ok();
    let code = body.as_ref().map(code).unwrap_or_default();
    refusal::check_service(response.status, &code)?;
    // A body with neither field is not from Prembly: the URL is probably wrong.
    let Some(mut body) =
        body.filter(|body| body.contains_key("status") || body.contains_key("response_code"))
    else {
        return Err(refusal::unexpected_response("Prembly's response is invalid"));
    };
    let watch_listed = code == WATCH_LISTED;
    if !(watch_listed || is_accepted(response, &code, &body["status"])) {
        let words = [body.remove("detail"), body.remove("message")];
        let words = words.into_iter().flatten().collect::<Vec<_>>().into();
        return Err(refusal::fault(response.status, &code, &words, with_image));
    }
    lookup_result(body, watch_listed)
}

/// Returns the code as two digits; it may be a number. Without a code, `status` decides.
fn code(body: &Map<String, Value>) -> String {
    let code = body.get("response_code").and_then(normal::text);
    code.map(|code| format!("{code:0>2}")).unwrap_or_default()
}

fn is_accepted(response: &Response, code: &str, status: &Value) -> bool {
    response.is_success() && (code == "00" || code.is_empty() && *status == Value::Bool(true))
}

fn lookup_result(mut body: Map<String, Value>, watch_listed: bool) -> Result<LookupResult, Fault> {
    let mut face = body.remove(FACE);
    let verified = body.get("verification").map_or(Value::Null, |v| v["status"].clone());
    let mut record = record(body);
    if let Some(record) = &mut record {
        face = face.or_else(|| record.take(FACE));
        if watch_listed {
            record.set("watch_listed", "YES");
        }
    }
    match record {
        Some(record) => Ok(LookupResult { record, face }),
        None if watch_listed => {
            Err(Fault::refused("watch-listed", "the register does not return watch-listed entries"))
        }
        None if verified == "NOT-VERIFIED" => Err(refusal::not_found()),
        None => Err(refusal::unexpected_response("Prembly's response has no record")),
    }
}

fn record(mut body: Map<String, Value>) -> Option<Record> {
    let mut data = body.remove(DATA).and_then(Record::of);
    let outside = RECORDS.iter().find_map(|name| body.remove(*name).and_then(Record::of));
    let inside = RECORDS.iter().find_map(|name| data.as_mut()?.take(name).and_then(Record::of));
    let face = data.as_mut().and_then(|data| data.take(FACE));
    let data = data.filter(|data| !data.is_empty());
    let mut record = outside.or(inside).or(data)?;
    if let Some(face) = face {
        record.put(FACE, face);
    }
    Some(record)
}
