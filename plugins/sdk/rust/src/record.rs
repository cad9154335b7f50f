//! Reads a record from an upstream's response and converts it to an [`Entry`].
//!
//! Upstreams spell one name in many ways: `firstName`, `firstname`, `first_name`, `FirstName`,
//! `first_name:`. Names are therefore compared by their letters and digits only, ignoring case.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::identity::Entry;
use crate::normal;

/// Names of e-mail and phone fields, in order of preference: the first valid value is used.
const EMAILS: [&str; 2] = ["email", "email_address"];
const PHONES: [&str; 7] =
    ["phone_number1", "phone_number", "telephoneno", "telephone", "mobile", "msisdn", "phone"];
const SECOND_PHONE: &str = "phone_number2";

/// A JSON object from an upstream, with normalized field names.
#[derive(Debug, Clone, Default)]
pub struct Record(BTreeMap<String, Value>);

impl Record {
    /// Reads an object, or the first item of an array. Returns `None` if it has no fields.
    pub fn of(value: Value) -> Option<Record> {
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Array(items) => return items.into_iter().next().and_then(Record::of),
            _ => return None,
        };
        let mut record = Record::default();
        fields.into_iter().for_each(|(name, value)| record.put(&name, value));
        (!record.0.is_empty()).then_some(record)
    }

    /// Returns whether no fields are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a field. An existing value is replaced only if it is null or blank.
    pub fn put(&mut self, name: &str, value: Value) {
        let known = self.0.entry(normalize_name(name)).or_insert(Value::Null);
        let silent = known.is_null() || known.as_str().is_some_and(|text| text.trim().is_empty());
        if silent {
            *known = value;
        }
    }

    /// Adds or replaces a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(normalize_name(name), value.into());
    }

    /// Removes a field and returns its value.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(&normalize_name(name))
    }

    /// Moves the fields of an inner object into this record, as [`Record::put`] does.
    pub fn merged(mut self, name: &str) -> Record {
        if let Some(Value::Object(inner)) = self.take(name) {
            inner.into_iter().for_each(|(name, value)| self.put(&name, value));
        }
        self
    }

    /// Returns the first value under these names that `read` accepts.
    pub fn first<T>(&self, names: &[&str], read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        names.iter().filter_map(|name| self.0.get(&normalize_name(name))).find_map(read)
    }

    fn phone(&self, calling_code: &str) -> Option<String> {
        let read = |value: &Value| normal::phone(value, calling_code);
        self.first(&PHONES, read).or_else(|| self.first(&[SECOND_PHONE], read))
    }
}

fn normalize_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The normalization of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// The date of a past event.
    Date,
    /// An expiry date.
    Expiry,
    /// A phone number in E.164.
    Phone,
    /// An e-mail address in lower case.
    Email,
    /// An image in base64.
    Image,
    /// "YES" or "NO".
    YesOrNo,
}

/// A field of `details`, with its names at upstreams.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name in `details`, also tried first at upstreams.
    pub name: &'static str,
    /// The normalization of its value.
    pub kind: Kind,
    /// Further upstream names, in order of preference: the first valid value is used.
    pub others: &'static [&'static str],
}

impl Field {
    /// Creates a field.
    pub const fn new(name: &'static str, kind: Kind, others: &'static [&'static str]) -> Field {
        Field { name, kind, others }
    }

    fn read(&self, record: &Record, calling_code: &str) -> Option<String> {
        let read = |value: &Value| match self.kind {
            Kind::Text => normal::text(value),
            Kind::Date => normal::date(value),
            Kind::Expiry => normal::expiry(value),
            Kind::Phone => normal::phone(value, calling_code),
            Kind::Email => normal::email(value),
            Kind::Image => normal::image(value),
            Kind::YesOrNo => normal::yes_or_no(value),
        };
        record.first(&[self.name], read).or_else(|| record.first(self.others, read))
    }
}

/// The published fields of one identity type.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Calling code of the country, digits only.
    pub calling_code: &'static str,
    /// All fields of `details`. Each is always present, and null if unknown.
    pub fields: &'static [Field],
    /// Permits one-time passwords to the e-mail address and phone number in the record. If `false`,
    /// the entry has at most the published e-mail address.
    pub contact: bool,
}

impl Shape {
    /// Converts a record to an entry.
    pub fn entry(&self, record: &Record) -> Entry {
        // Serialized by hand, because a map of JSON values would sort the fields.
        let field = |field: &Field| {
            let value = field.read(record, self.calling_code).map_or(Value::Null, Value::String);
            format!("{}:{value}", Value::from(field.name))
        };
        let details: Vec<String> = self.fields.iter().map(field).collect();
        Entry {
            details: format!("{{{}}}", details.join(",")),
            email: match self.contact {
                true => record.first(&EMAILS, normal::email),
                false => self.published_email(record),
            },
            phone: record.phone(self.calling_code).filter(|_| self.contact),
        }
    }

    fn published_email(&self, record: &Record) -> Option<String> {
        let field = self.fields.iter().find(|field| matches!(field.kind, Kind::Email))?;
        field.read(record, self.calling_code)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: [Field; 4] = [
        Field::new("first_name", Kind::Text, &["forename"]),
        Field::new("date_of_birth", Kind::Date, &["birthLabel", "birthMs"]),
        Field::new("image", Kind::Image, &["photo"]),
        Field::new("watch_listed", Kind::YesOrNo, &[]),
    ];

    fn entry(record: Value, contact: bool) -> Entry {
        Shape { calling_code: "234", fields: &FIELDS, contact }.entry(&Record::of(record).unwrap())
    }

    fn details(record: Value) -> Value {
        serde_json::from_str(&entry(record, true).details).unwrap()
    }

    #[test]
    fn field_names_match_in_any_spelling() {
        for name in
            ["first_name", "firstName", "FirstName", "FIRST NAME", "first_name:", "Forename"]
        {
            assert_eq!(details(json!({name: "Ada"}))["first_name"], "Ada", "{name}");
        }
        let twice = json!({"FIRST_NAME": "", "firstName": "Ada", "first_name": " "});
        assert_eq!(details(twice)["first_name"], "Ada");
    }

    #[test]
    fn details_have_exactly_the_declared_fields() {
        let unknown =
            json!({"first_name": null, "date_of_birth": null, "image": null, "watch_listed": null});
        assert_eq!(details(json!({"shoe_size": "44"})), unknown);
    }

    #[test]
    fn the_first_valid_value_is_used() {
        let record =
            json!({"date_of_birth": "?", "birthLabel": "N/A", "birthMs": 643248000000_i64});
        assert_eq!(details(record)["date_of_birth"], "21/05/1990");
    }

    #[test]
    fn empty_values_are_not_records_and_inner_objects_are_merged() {
        for nothing in [json!(null), json!({}), json!([]), json!([{}]), json!("x"), json!([1])] {
            assert!(Record::of(nothing.clone()).is_none(), "{nothing}");
        }
        assert_eq!(
            details(json!([{"first_name": "Ada"}, {"first_name": "Bo"}]))["first_name"],
            "Ada"
        );
        let nested = json!({"first_name": "", "inner_part": {"firstName": "Ada", "photo": "/9j/"}});
        let record = Record::of(nested).unwrap().merged("inner_part");
        assert_eq!(record.first(&["first_name"], normal::text).as_deref(), Some("Ada"));
        assert_eq!(record.first(&["image", "photo"], normal::image).as_deref(), Some("/9j/"));
    }

    #[test]
    fn contact_data_is_returned_only_if_the_shape_allows_it() {
        let both =
            json!({"email": "ADA@x.test", "phoneNumber1": "N/A", "phoneNumber2": "08012345678"});
        let found = entry(both.clone(), true);
        assert_eq!(found.email.as_deref(), Some("ada@x.test"));
        assert_eq!(found.phone.as_deref(), Some("+2348012345678"));
        let silent = entry(both.clone(), false);
        assert_eq!((silent.email, silent.phone), (None, None));
        const FIELDS: &[Field] = &[Field::new("email", Kind::Email, &[])];
        let firm = Shape { calling_code: "234", fields: FIELDS, contact: false };
        let firm = firm.entry(&Record::of(both).unwrap());
        assert_eq!((firm.email.as_deref(), firm.phone), (Some("ada@x.test"), None));
    }
}
