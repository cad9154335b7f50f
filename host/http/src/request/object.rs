//! Reads a JSON object field by field, in the specification's order, so that errors name the first
//! invalid field.
//!
//! Types are strict, and unknown fields are ignored. `null` and the text `""` count as absent.

use serde_json::{Map, Value};
use url::Url;

use super::urls;
use tollhouse_platform::{
    clock::Timestamp,
    error::{Error, Result},
    values::money::{AmountError, MAX_MINOR, Minor},
};

const MAX_URL_BYTES: usize = 2_048;
/// Maximum length of a text in a list, in characters.
const MAX_ITEM_CHARACTERS: usize = 100;
const MAX_OBJECT_BYTES: usize = 16 << 10;

/// The fields of a JSON object, and its position in the request.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// `row 3: ` in a batch, else empty.
    row: String,
    /// Path of the enclosing objects.
    path: String,
    values: Map<String, Value>,
}

impl From<Map<String, Value>> for Fields {
    fn from(values: Map<String, Value>) -> Fields {
        Fields { values, ..Fields::default() }
    }
}

impl Fields {
    /// Creates the fields of a row of a batch, counted from 1.
    #[must_use]
    pub fn of_row(row: usize, values: Map<String, Value>) -> Fields {
        Fields { row: format!("row {row}: "), path: String::new(), values }
    }

    fn name(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    #[must_use]
    pub fn must_be(&self, field: &str, what: &str) -> Error {
        Error::invalid(format!("{}the {} field must be {what}", self.row, self.name(field)))
    }

    #[must_use]
    pub fn required(&self, field: &str) -> Error {
        Error::invalid(format!("{}the {} field is required", self.row, self.name(field)))
    }

    /// Returns whether the field was sent, even as `null`.
    pub fn has(&self, field: &str) -> bool {
        self.values.contains_key(field)
    }

    /// Returns the names of all sent fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.values.keys()
    }

    /// Returns whether the field was sent with a value other than `null`.
    pub fn is_given(&self, field: &str) -> bool {
        self.value(field).is_some()
    }

    fn value(&self, field: &str) -> Option<&Value> {
        self.values.get(field).filter(|value| !value.is_null())
    }

    /// Reads a text of at most `most` characters, without control characters.
    pub fn text(&self, field: &str, most: usize) -> Result<Option<String>> {
        let text = self.prose(field, most)?;
        match &text {
            Some(text) if text.chars().any(char::is_control) => {
                Err(self.must_be(field, "free of control characters"))
            }
            _ => Ok(text),
        }
    }

    /// Like [`Fields::text`], but tabs and line breaks are allowed.
    pub fn prose(&self, field: &str, most: usize) -> Result<Option<String>> {
        let text = match self.value(field) {
            None => return Ok(None),
            Some(Value::String(text)) if text.is_empty() => return Ok(None),
            Some(Value::String(text)) => text,
            Some(_) => return Err(self.must_be(field, "a string")),
        };
        if text.chars().count() > most {
            return Err(self.must_be(field, &format!("at most {most} characters")));
        }
        if text.chars().any(|c| c.is_control() && !['\n', '\r', '\t'].contains(&c)) {
            return Err(self.must_be(field, "free of control characters"));
        }
        Ok(Some(text.clone()))
    }

    pub fn required_text(&self, field: &str, most: usize) -> Result<String> {
        self.text(field, most)?.ok_or_else(|| self.required(field))
    }

    /// Like [`Fields::text`], without whitespace.
    pub fn visible(&self, field: &str, most: usize) -> Result<Option<String>> {
        match self.text(field, most)? {
            Some(text) if text.chars().any(char::is_whitespace) => {
                Err(self.must_be(field, "visible characters only"))
            }
            text => Ok(text),
        }
    }

    /// Like [`Fields::visible`], but not `.` or `..`: clients remove these from URL paths.
    pub fn path_segment(&self, field: &str, most: usize) -> Result<Option<String>> {
        match self.visible(field, most)? {
            Some(text) if [".", ".."].contains(&&*text) => {
                Err(self.must_be(field, "neither . nor .."))
            }
            text => Ok(text),
        }
    }

    pub fn one_of(&self, field: &str, allowed: &[&str]) -> Result<Option<String>> {
        let text = self.text(field, 100)?;
        text.iter().try_for_each(|text| self.require_one_of(field, text, allowed))?;
        Ok(text)
    }

    /// Checks the text of a field.
    pub fn require_one_of(&self, field: &str, text: &str, allowed: &[&str]) -> Result<()> {
        match allowed.contains(&text) {
            true => Ok(()),
            false => Err(self.must_be(field, &format!("one of {}", allowed.join(", ")))),
        }
    }

    pub fn email(&self, field: &str) -> Result<Option<String>> {
        match self.text(field, 254)? {
            Some(text) if !tollhouse_platform::values::email::is_valid(&text) => {
                Err(self.must_be(field, "a valid email address"))
            }
            text => Ok(text),
        }
    }

    pub fn phone(&self, field: &str) -> Result<Option<String>> {
        match self.text(field, 100)? {
            Some(text) if !tollhouse_platform::values::phone::is_e164(&text) => {
                Err(self.must_be(field, "a phone number in E.164 format"))
            }
            text => Ok(text),
        }
    }

    /// Reads an absolute http or https URL without credentials.
    pub fn url(&self, field: &str) -> Result<Option<String>> {
        self.checked_url(field, urls::is_http, "a valid http or https URL")
    }

    /// Reads the URL to which checkout returns a payer: http, https or an app link.
    pub fn return_url(&self, field: &str) -> Result<Option<String>> {
        let fits = |url: &Url| urls::is_http(url) || urls::is_app_link(url);
        self.checked_url(field, fits, "a valid http or https URL, or an app link")
    }

    fn checked_url(
        &self,
        field: &str,
        fits: impl Fn(&Url) -> bool,
        what: &str,
    ) -> Result<Option<String>> {
        let Some(text) = self.text(field, MAX_URL_BYTES)? else { return Ok(None) };
        match Url::parse(&text) {
            Ok(url) if fits(&url) => Ok(Some(text)),
            _ => Err(self.must_be(field, what)),
        }
    }

    pub fn boolean(&self, field: &str) -> Result<Option<bool>> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.must_be(field, "a boolean")),
        }
    }

    pub fn integer(&self, field: &str, least: i64, most: i64) -> Result<Option<i64>> {
        let number = match self.value(field) {
            None => return Ok(None),
            Some(Value::Number(number)) => {
                Minor::from_major(number).ok().and_then(Minor::to_whole_major)
            }
            Some(_) => None,
        };
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.must_be(field, &format!("a whole number from {least} to {most}"))),
        }
    }

    /// Reads a number in the major unit, with at most 2 decimals.
    pub fn number(&self, field: &str) -> Result<Option<Minor>> {
        let number = match self.value(field) {
            None => return Ok(None),
            Some(Value::Number(number)) => number,
            Some(_) => return Err(self.must_be(field, "a number")),
        };
        match Minor::from_major(number) {
            Ok(minor) => Ok(Some(minor)),
            Err(AmountError::TooManyDecimals) => {
                Err(self.must_be(field, "a number with at most 2 decimals"))
            }
            Err(AmountError::TooLarge) => {
                let most = Minor(MAX_MINOR).to_major();
                Err(self.must_be(field, &format!("at most {most}")))
            }
        }
    }

    /// Like [`Fields::number`], at least 0.
    pub fn non_negative(&self, field: &str) -> Result<Option<Minor>> {
        match self.number(field)? {
            Some(number) if number < Minor(0) => Err(self.must_be(field, "0 or more")),
            number => Ok(number),
        }
    }

    /// Reads a required amount greater than 0.
    pub fn amount(&self, field: &str) -> Result<Minor> {
        match self.number(field)? {
            None => Err(self.required(field)),
            Some(amount) if amount <= Minor(0) => Err(self.must_be(field, "greater than 0")),
            Some(amount) => Ok(amount),
        }
    }

    pub fn timestamp(&self, field: &str) -> Result<Option<Timestamp>> {
        let Some(text) = self.text(field, 40)? else { return Ok(None) };
        let at = Timestamp::parse(&text);
        at.map(Some).ok_or_else(|| self.must_be(field, "an RFC 3339 timestamp"))
    }

    /// Reads a list of texts without duplicates, in the order sent.
    pub fn list(&self, field: &str) -> Result<Option<Vec<String>>> {
        let wrong = || self.must_be(field, "a list of at most 100 strings");
        let items = match self.value(field) {
            None => return Ok(None),
            Some(Value::Array(items)) if items.len() <= 100 => items,
            Some(_) => return Err(wrong()),
        };
        let mut set: Vec<String> = Vec::new();
        for item in items {
            let item = item.as_str().ok_or_else(wrong)?;
            if !(1..=MAX_ITEM_CHARACTERS).contains(&item.chars().count()) {
                return Err(self.must_be(field, "a list of strings of 1 to 100 characters"));
            }
            if item.chars().any(char::is_control) {
                return Err(self.must_be(field, "free of control characters"));
            }
            if !set.iter().any(|known| known == item) {
                set.push(item.to_owned());
            }
        }
        Ok(Some(set))
    }

    /// Reads a list of allowed texts.
    pub fn set_of(&self, field: &str, allowed: &[&str]) -> Result<Option<Vec<String>>> {
        let set = self.list(field)?;
        if set.iter().flatten().any(|item| !allowed.contains(&&**item)) {
            return Err(self.must_be(field, &format!("any of {}", allowed.join(", "))));
        }
        Ok(set)
    }

    pub fn object(&self, field: &str) -> Result<Option<Map<String, Value>>> {
        match self.value(field) {
            None => Ok(None),
            Some(Value::Object(object)) => {
                let bytes = serde_json::to_vec(object).map_err(Error::internal)?.len();
                if bytes > MAX_OBJECT_BYTES {
                    return Err(self.must_be(field, "at most 16 KiB of JSON"));
                }
                if !object.iter().all(|(name, value)| has_no_nul(name) && is_storable(value)) {
                    return Err(self.must_be(field, "free of NUL characters and extreme numbers"));
                }
                Ok(Some(object.clone()))
            }
            Some(_) => Err(self.must_be(field, "an object")),
        }
    }

    /// Reads a nested object; an absent one has no fields.
    pub fn nested(&self, field: &str) -> Result<Fields> {
        let values = self.object(field)?.unwrap_or_default();
        Ok(Fields { row: self.row.clone(), path: self.name(field), values })
    }

    /// Reads a list of at most `most` objects; an empty list counts as absent.
    pub fn rows(&self, field: &str, most: usize) -> Result<Option<Vec<Fields>>> {
        let items = match self.value(field) {
            None => return Ok(None),
            Some(Value::Array(items)) if items.is_empty() => return Ok(None),
            Some(Value::Array(items)) if items.len() > most => {
                return Err(self.must_be(field, &format!("at most {most}")));
            }
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.must_be(field, "a list")),
        };
        let rows = (1..).zip(items).map(|(row, item)| match item {
            Value::Object(values) => Ok(Fields::of_row(row, values.clone())),
            _ => Err(Error::invalid(format!("row {row} must be an object"))),
        });
        rows.collect::<Result<Vec<_>>>().map(Some)
    }

    /// Reads an object of texts.
    pub fn texts(&self, field: &str) -> Result<Option<Vec<(String, String)>>> {
        let Some(object) = self.object(field)? else { return Ok(None) };
        let inside = Fields { row: self.row.clone(), path: self.name(field), values: object };
        let names: Vec<String> = inside.values.keys().cloned().collect();
        let mut texts = Vec::new();
        for name in names {
            if let Some(text) = inside.text(&name, 4_096)? {
                texts.push((name, text));
            }
        }
        Ok(Some(texts))
    }
}

/// Returns whether both engines store a value exactly: PostgreSQL has no NUL and limits numbers.
fn is_storable(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => has_double_exponent(&number.to_string()),
        Value::String(text) => has_no_nul(text),
        Value::Array(items) => items.iter().all(is_storable),
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| has_no_nul(name) && is_storable(value))
        }
    }
}

fn has_no_nul(text: &str) -> bool {
    !text.contains('\0')
}

/// Returns whether the exponent is in the range of a double.
fn has_double_exponent(number: &str) -> bool {
    let exponent = number.split_once(['e', 'E']).map(|(_, exponent)| exponent.parse::<i32>());
    exponent.is_none_or(|exponent| exponent.is_ok_and(|exponent| exponent.abs() <= 308))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        let Value::Object(values) = value else { panic!("an object") };
        values.into()
    }

    fn error_text<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_field_and_its_rule() {
        let body = fields(json!({
            "t": 5, "long": "abcd", "line": "a\nb", "blank": "a b", "n": "1", "many": 1.005,
            "zero": 0, "b": "true", "u": "ftp://x", "list": ["card", "cash"], "o": [], "i": 1.5,
            "mail": "nobody", "nested": { "u": "x" }
        }));
        let nested = body.nested("nested").unwrap();
        for (message, expected) in [
            (error_text(body.text("t", 9)), "the t field must be a string"),
            (error_text(body.text("long", 3)), "the long field must be at most 3 characters"),
            (error_text(body.text("line", 9)), "the line field must be free of control characters"),
            (
                error_text(body.visible("blank", 9)),
                "the blank field must be visible characters only",
            ),
            (error_text(body.required_text("absent", 9)), "the absent field is required"),
            (error_text(body.number("n")), "the n field must be a number"),
            (
                error_text(body.number("many")),
                "the many field must be a number with at most 2 decimals",
            ),
            (error_text(body.amount("zero")), "the zero field must be greater than 0"),
            (error_text(body.amount("absent")), "the absent field is required"),
            (error_text(body.boolean("b")), "the b field must be a boolean"),
            (error_text(body.url("u")), "the u field must be a valid http or https URL"),
            (error_text(body.set_of("list", &["card"])), "the list field must be any of card"),
            (error_text(body.object("o")), "the o field must be an object"),
            (error_text(body.integer("i", 0, 5)), "the i field must be a whole number from 0 to 5"),
            (error_text(body.email("mail")), "the mail field must be a valid email address"),
            (error_text(nested.url("u")), "the nested.u field must be a valid http or https URL"),
            (error_text(nested.required_text("absent", 9)), "the nested.absent field is required"),
        ] {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn integers_may_have_a_fraction_of_zero() {
        for (text, whole) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("0.3e1", Some(3)),
            ("3.5", None),
            ("2.9999999999999999999", None),
            ("6", None),
        ] {
            let body = fields(serde_json::from_str(&format!("{{\"n\": {text}}}")).unwrap());
            assert_eq!(body.integer("n", 0, 5).ok().flatten(), whole, "{text}");
        }
    }

    /// serde_json's internal representation of numbers must not bypass a check.
    #[test]
    fn a_number_in_internal_representation_is_a_number() {
        let disguised =
            |text: &str| format!(r#"{{"a": {{"$serde_json::private::Number": {text}}}}}"#);
        for not_json in [r#""five""#, r#""5 ""#, "5", r#""5", "b": 1"#] {
            assert!(serde_json::from_str::<Value>(&disguised(not_json)).is_err(), "{not_json}");
        }
        let read = |text: &str| fields(serde_json::from_str(&disguised(text)).unwrap());
        assert_eq!(read(r#""5.25""#).amount("a").unwrap(), Minor(525));
        assert!(read(r#""-1""#).amount("a").is_err());
        assert!(read(r#""1e400""#).amount("a").is_err());
        assert!(read(r#""5""#).object("a").is_err());
        let nested = r#"{"m": {"x": {"$serde_json::private::Number": "1e400"}}}"#;
        assert!(fields(serde_json::from_str(nested).unwrap()).object("m").is_err());
    }

    #[test]
    fn objects_hold_only_what_both_engines_keep() {
        for (text, kept) in [
            (r#"{"a": {"b": [1, -2.5, 1e308, "x", null, true]}}"#, true),
            (r#"{"a": {"b": ["\u0000"]}}"#, false),
            (r#"{"a": {"\u0000": 1}}"#, false),
            (r#"{"a": {"b": 1e-309}}"#, false),
            (r#"{"a": {"b": 1e99999999999}}"#, false),
        ] {
            let body = fields(serde_json::from_str(text).unwrap());
            assert_eq!(body.object("a").is_ok(), kept, "{text}");
        }
    }

    #[test]
    fn null_and_empty_are_absent() {
        let body = fields(json!({ "a": null, "b": "" }));
        assert_eq!(body.text("a", 9).unwrap(), None);
        assert_eq!(body.text("b", 9).unwrap(), None);
        assert_eq!(body.set_of("a", &["x"]).unwrap(), None);
        assert_eq!(body.amount("a").unwrap_err().to_string(), "the a field is required");
    }

    #[test]
    fn rows_are_named_by_their_number() {
        let body = fields(
            json!({ "users": [{ "a": 1 }, { "b": { "c": 5 } }], "none": [], "bad": [1], "text": "x" }),
        );
        let rows = body.rows("users", 2).unwrap().unwrap();
        assert_eq!(error_text(rows[0].text("a", 9)), "row 1: the a field must be a string");
        assert_eq!(error_text(rows[1].required_text("x", 9)), "row 2: the x field is required");
        let nested = rows[1].nested("b").unwrap();
        assert_eq!(error_text(nested.text("c", 9)), "row 2: the b.c field must be a string");
        assert!(
            body.rows("none", 2).unwrap().is_none() && body.rows("absent", 2).unwrap().is_none()
        );
        assert_eq!(error_text(body.rows("users", 1)), "the users field must be at most 1");
        assert_eq!(error_text(body.rows("bad", 1)), "row 1 must be an object");
        assert_eq!(error_text(body.rows("text", 1)), "the text field must be a list");
    }
}
