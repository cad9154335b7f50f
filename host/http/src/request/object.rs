//! Reads a JSON object field by field, in the specification's order, so that errors name the first
//! invalid field.
//!
//! Types are strict, and unknown fields are ignored. `null` and the text `""` count as absent.

use serde_json::{Map, Value};

use super::{fields::Field, kinds::Kind};
use tollhouse_platform::{
    error::{Error, Result},
    values::money::{AmountError, MAX_MINOR, Minor},
};

/// Maximum length of a text in a list, in characters.
const MAX_ITEM_CHARACTERS: usize = 100;
/// Maximum length of keys and certificates in PEM, chains included.
const MAX_PEM_CHARACTERS: usize = 16_384;
const MAX_OBJECT_BYTES: usize = 16 << 10;

/// The fields of a JSON object, and its position in the request.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// `row 3: ` in a batch, else empty.
    row: String,
    /// Path of the enclosing objects: empty, or `user.`.
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

    #[must_use]
    pub fn must_be(&self, field: &str, what: &str) -> Error {
        Error::invalid(format!("{}the {}{field} field must be {what}", self.row, self.path))
    }

    #[must_use]
    pub fn required(&self, field: &str) -> Error {
        Error::invalid(format!("{}the {}{field} field is required", self.row, self.path))
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

    /// Returns what `get` finds in a field's value. If nothing, the error says it must be `what`.
    fn typed<'v, V>(
        &'v self,
        field: &str,
        what: &str,
        get: impl Fn(&'v Value) -> Option<V>,
    ) -> Result<Option<V>> {
        self.value(field)
            .map(|value| get(value).ok_or_else(|| self.must_be(field, what)))
            .transpose()
    }

    /// Reads a field whose name is known only at run time.
    pub fn field<F: Field<Fields>>(&self, name: &str) -> Result<F::Value> {
        F::read(self, name)
    }

    /// Reads a field of the kind `K`. If it does not fit, the error says it must be `what`.
    pub(super) fn checked<K: Kind>(
        &self,
        field: &str,
        what: &str,
        fits: impl Fn(&K::Value) -> bool,
    ) -> Result<Option<K::Value>> {
        match K::read(self, field)? {
            Some(value) if !fits(&value) => Err(self.must_be(field, what)),
            value => Ok(value),
        }
    }

    /// Reads a text of at most `most` characters, without control characters.
    pub fn text(&self, field: &str, most: usize) -> Result<Option<String>> {
        match self.prose(field, most)? {
            Some(text) if text.contains(char::is_control) => {
                Err(self.must_be(field, "free of control characters"))
            }
            text => Ok(text),
        }
    }

    /// Reads a text without a limit. An empty one counts as absent.
    pub(super) fn any_text(&self, field: &str) -> Result<Option<String>> {
        let text = self.typed(field, "a string", Value::as_str)?;
        Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
    }

    /// Like [`Fields::text`], but tabs and line breaks are allowed.
    pub(super) fn prose(&self, field: &str, most: usize) -> Result<Option<String>> {
        let Some(text) = self.any_text(field)? else { return Ok(None) };
        if text.chars().count() > most {
            return Err(self.must_be(field, &format!("at most {most} characters")));
        }
        if text.chars().any(|c| c.is_control() && !['\n', '\r', '\t'].contains(&c)) {
            return Err(self.must_be(field, "free of control characters"));
        }
        Ok(Some(text))
    }

    /// Checks the text of a field.
    pub fn require_one_of(&self, field: &str, text: &str, allowed: &[&str]) -> Result<()> {
        match allowed.contains(&text) {
            true => Ok(()),
            false => Err(self.must_be(field, &format!("one of {}", allowed.join(", ")))),
        }
    }

    pub(super) fn boolean(&self, field: &str) -> Result<Option<bool>> {
        self.typed(field, "a boolean", Value::as_bool)
    }

    pub(super) fn integer(&self, field: &str, least: i64, most: i64) -> Result<Option<i64>> {
        self.typed(field, &format!("a whole number from {least} to {most}"), |value| {
            whole(value, least, most)
        })
    }

    /// Reads a list of at most 100 whole numbers.
    pub(super) fn integers(&self, field: &str, least: i64, most: i64) -> Result<Option<Vec<i64>>> {
        let what = format!("a list of 1 to 100 whole numbers from {least} to {most}");
        self.typed(field, &what, |value| {
            let items = value.as_array().filter(|items| (1..=100).contains(&items.len()))?;
            items.iter().map(|item| whole(item, least, most)).collect()
        })
    }

    /// Reads a number in the major unit, with at most 2 decimals.
    pub(super) fn number(&self, field: &str) -> Result<Option<Minor>> {
        let number = self.typed(field, "a number", Value::as_number)?;
        let most = Minor(MAX_MINOR).to_major();
        number.map(Minor::from_major).transpose().map_err(|error| match error {
            AmountError::TooManyDecimals => self.must_be(field, "a number with at most 2 decimals"),
            AmountError::TooLarge => self.must_be(field, &format!("at most {most}")),
        })
    }

    /// Reads a list of texts without duplicates, in the order sent.
    pub(super) fn list(&self, field: &str) -> Result<Option<Vec<String>>> {
        const KIND: &str = "a list of at most 100 strings";
        let items = |value| Value::as_array(value).filter(|items| items.len() <= 100);
        let Some(items) = self.typed(field, KIND, items)? else { return Ok(None) };
        let mut set: Vec<String> = Vec::new();
        for item in items {
            let item = item.as_str().ok_or_else(|| self.must_be(field, KIND))?;
            if !(1..=MAX_ITEM_CHARACTERS).contains(&item.chars().count()) {
                return Err(self.must_be(field, "a list of strings of 1 to 100 characters"));
            }
            if item.contains(char::is_control) {
                return Err(self.must_be(field, "free of control characters"));
            }
            if !set.iter().any(|known| known == item) {
                set.push(item.to_owned());
            }
        }
        Ok(Some(set))
    }

    pub(super) fn object(&self, field: &str) -> Result<Option<Map<String, Value>>> {
        let object = self.typed(field, "an object", Value::as_object)?;
        let Some(object) = object else { return Ok(None) };
        if serde_json::to_vec(object).map_err(Error::internal)?.len() > MAX_OBJECT_BYTES {
            return Err(self.must_be(field, "at most 16 KiB of JSON"));
        }
        if !is_storable_object(object) {
            return Err(self.must_be(field, "free of NUL characters and extreme numbers"));
        }
        Ok(Some(object.clone()))
    }

    /// Reads a nested object; an absent one has no fields.
    pub(super) fn nested(&self, field: &str) -> Result<Fields> {
        let values = self.object(field)?.unwrap_or_default();
        Ok(Fields { row: self.row.clone(), path: format!("{}{field}.", self.path), values })
    }

    /// Reads a list of at most `most` objects; an empty list counts as absent.
    pub(super) fn rows(&self, field: &str, most: usize) -> Result<Option<Vec<Fields>>> {
        let items = self.typed(field, "a list", Value::as_array)?;
        let Some(items) = items.filter(|items| !items.is_empty()) else { return Ok(None) };
        if items.len() > most {
            return Err(self.must_be(field, &format!("at most {most}")));
        }
        let rows = (1..).zip(items).map(|(row, item)| match item {
            Value::Object(values) => Ok(Fields::of_row(row, values.clone())),
            _ => Err(Error::invalid(format!("row {row} must be an object"))),
        });
        rows.collect::<Result<Vec<_>>>().map(Some)
    }

    /// Reads an object of texts. Only keys and certificates in PEM may have line breaks: in any
    /// other text, one is a mistake.
    pub(super) fn texts(&self, field: &str) -> Result<Option<Vec<(String, String)>>> {
        if !self.is_given(field) {
            return Ok(None);
        }
        let inside = self.nested(field)?;
        let text = |name: &String| {
            let pem = inside.prose(name, MAX_PEM_CHARACTERS)?.filter(|text| is_pem(text));
            let text = match pem {
                Some(pem) => Some(pem),
                None => inside.text(name, 4_096)?,
            };
            Ok(text.map(|text| (name.clone(), text)))
        };
        inside.names().filter_map(|name| text(name).transpose()).collect::<Result<_>>().map(Some)
    }
}

fn whole(value: &Value, least: i64, most: i64) -> Option<i64> {
    let number = Minor::from_major(value.as_number()?).ok()?.to_whole_major()?;
    (least..=most).contains(&number).then_some(number)
}

fn is_pem(text: &str) -> bool {
    text.starts_with("-----BEGIN ")
}

/// Returns whether both engines store a value exactly: PostgreSQL has no NUL and limits numbers.
fn is_storable(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => has_double_exponent(&number.to_string()),
        Value::String(text) => has_no_nul(text),
        Value::Array(items) => items.iter().all(is_storable),
        Value::Object(fields) => is_storable_object(fields),
    }
}

fn is_storable_object(fields: &Map<String, Value>) -> bool {
    fields.iter().all(|(name, value)| has_no_nul(name) && is_storable(value))
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

    use super::{super::kinds::*, *};

    fn fields(value: Value) -> Fields {
        let Value::Object(values) = value else { panic!("an object") };
        values.into()
    }

    choices! {
        Card = &["card"];
    }

    /// Returns why a field cannot be read.
    fn refused<F: Field<Fields>>(fields: &Fields, name: &str) -> String {
        fields.field::<F>(name).err().unwrap().to_string()
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
            (refused::<Text<9>>(&body, "t"), "the t field must be a string"),
            (refused::<Text<3>>(&body, "long"), "the long field must be at most 3 characters"),
            (
                refused::<Text<9>>(&body, "line"),
                "the line field must be free of control characters",
            ),
            (
                refused::<Visible<9>>(&body, "blank"),
                "the blank field must be visible characters only",
            ),
            (refused::<Text<9>>(&body, "absent"), "the absent field is required"),
            (refused::<Decimal>(&body, "n"), "the n field must be a number"),
            (
                refused::<Decimal>(&body, "many"),
                "the many field must be a number with at most 2 decimals",
            ),
            (refused::<Amount>(&body, "zero"), "the zero field must be greater than 0"),
            (refused::<Amount>(&body, "absent"), "the absent field is required"),
            (refused::<Flag>(&body, "b"), "the b field must be a boolean"),
            (refused::<HttpUrl>(&body, "u"), "the u field must be a valid http or https URL"),
            (refused::<ListOf<Card>>(&body, "list"), "the list field must be any of card"),
            (refused::<Object>(&body, "o"), "the o field must be an object"),
            (refused::<Whole<0, 5>>(&body, "i"), "the i field must be a whole number from 0 to 5"),
            (
                refused::<Wholes<0, 5>>(&body, "i"),
                "the i field must be a list of 1 to 100 whole numbers from 0 to 5",
            ),
            (refused::<Email>(&body, "mail"), "the mail field must be a valid email address"),
            (
                refused::<HttpUrl>(&nested, "u"),
                "the nested.u field must be a valid http or https URL",
            ),
            (refused::<Text<9>>(&nested, "absent"), "the nested.absent field is required"),
        ] {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn only_pem_may_have_line_breaks() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIE\r\n-----END PRIVATE KEY-----\n";
        let long = format!("{key}{}", "x".repeat(5_000));
        for (text, expected) in [
            (key, None),
            (&*long, None),
            ("key", None),
            ("key\n", Some("the c.k field must be free of control characters")),
            ("-----BEGIN \u{7}", Some("the c.k field must be free of control characters")),
            (&*"x".repeat(4_097), Some("the c.k field must be at most 4096 characters")),
        ] {
            let body = fields(json!({ "c": { "k": text } }));
            let read = body.texts("c").map_err(|error| error.to_string());
            match expected {
                Some(message) => assert_eq!(read.unwrap_err(), message),
                None => assert_eq!(read, Ok(Some(vec![("k".to_owned(), text.to_owned())]))),
            }
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
        let amount = |text: &str| <Option<Amount>>::read(&read(text), "a");
        assert_eq!(amount(r#""5.25""#).unwrap(), Some(Minor(525)));
        assert!(amount(r#""-1""#).is_err());
        assert!(amount(r#""1e400""#).is_err());
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
        assert_eq!(<Option<ListOf<Card>>>::read(&body, "a").unwrap(), None);
        assert_eq!(refused::<Amount>(&body, "a"), "the a field is required");
    }

    #[test]
    fn rows_are_named_by_their_number() {
        let body = fields(
            json!({ "users": [{ "a": 1 }, { "b": { "c": 5 } }], "none": [], "bad": [1], "text": "x" }),
        );
        let rows = body.rows("users", 2).unwrap().unwrap();
        assert_eq!(refused::<Text<9>>(&rows[0], "a"), "row 1: the a field must be a string");
        assert_eq!(refused::<Text<9>>(&rows[1], "x"), "row 2: the x field is required");
        let nested = rows[1].nested("b").unwrap();
        assert_eq!(refused::<Text<9>>(&nested, "c"), "row 2: the b.c field must be a string");
        assert!(
            body.rows("none", 2).unwrap().is_none() && body.rows("absent", 2).unwrap().is_none()
        );
        assert_eq!(
            refused::<Rows<Text<9>, 1>>(&body, "users"),
            "the users field must be at most 1"
        );
        assert_eq!(refused::<Rows<Text<9>, 1>>(&body, "bad"), "row 1 must be an object");
        assert_eq!(refused::<Rows<Text<9>, 1>>(&body, "text"), "the text field must be a list");
    }
}
