//! Forms with several fields, and the values that browsers send.

use askama::Template;
use serde::Deserialize;

use crate::session::Session;

/// A form, which opens when its heading is chosen.
#[derive(Template)]
#[template(path = "form.html")]
pub struct FieldsForm {
    /// Prefix of the ids of its fields, because a page may have several forms.
    id: String,
    heading: &'static str,
    action: String,
    fields: Vec<Field>,
    button: &'static str,
    form_token: String,
}

impl FieldsForm {
    /// Returns a form that posts to `action`, for those with the permission.
    pub fn new(
        session: &Session,
        permission: &str,
        (heading, button): (&'static str, &'static str),
        action: String,
        fields: Vec<Field>,
    ) -> Option<FieldsForm> {
        let form_token = session.form_token();
        let id = action.rsplit('/').next().unwrap_or_default().to_owned();
        let form = || FieldsForm { id, heading, action, fields, button, form_token };
        session.me.may(permission).then(form)
    }
}

/// A field of a form.
pub struct Field {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    kind: Kind,
    /// A text or a choice as the form shows it. [`Sent::is_changed`] compares with it.
    value: String,
}

enum Kind {
    /// A text of this `type` of HTML.
    Text { input: &'static str, required: bool },
    /// A required text of several lines.
    Lines,
    /// One of these.
    Choice(Vec<(&'static str, &'static str)>),
    /// Any number of these.
    Choices(&'static [&'static str]),
}

impl Field {
    pub fn text(name: &'static str, label: &'static str, hint: &'static str) -> Field {
        Field {
            name,
            label,
            hint,
            kind: Kind::Text { input: "text", required: false },
            value: String::new(),
        }
    }

    pub fn required(name: &'static str, label: &'static str, input: &'static str) -> Field {
        Field {
            name,
            label,
            hint: "",
            kind: Kind::Text { input, required: true },
            value: String::new(),
        }
    }

    pub fn lines(name: &'static str, label: &'static str) -> Field {
        Field { name, label, hint: "", kind: Kind::Lines, value: String::new() }
    }

    pub fn choice(
        name: &'static str,
        label: &'static str,
        choices: &[(&'static str, &'static str)],
    ) -> Field {
        Field { name, label, hint: "", kind: Kind::Choice(choices.to_vec()), value: String::new() }
    }

    pub fn choices(
        name: &'static str,
        label: &'static str,
        choices: &'static [&'static str],
    ) -> Field {
        Field {
            name,
            label,
            hint: "If none is selected, all apply.",
            kind: Kind::Choices(choices),
            value: String::new(),
        }
    }

    pub fn with_value(self, value: String) -> Field {
        Field { value, ..self }
    }
}

/// The fields that a browser sent. A checkbox that is not checked is absent.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Sent(Vec<(String, String)>);

impl Sent {
    /// Returns the value of a field, which is empty if it was not sent.
    pub fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(sent, _)| sent == name);
        found.map_or("", |(_, value)| value.trim())
    }

    /// Returns the value of a field if it is not empty.
    pub fn optional(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Returns whether a field differs from what the form showed.
    pub fn is_changed(&self, name: &str) -> bool {
        self.text(name) != self.text(&format!("shown_{name}"))
    }

    /// Returns all values of a field; `None` if there are none.
    pub fn all(&self, name: &str) -> Option<Vec<&str>> {
        let values = self.0.iter().filter(|(sent, _)| sent == name);
        let values: Vec<_> = values.map(|(_, value)| value.as_str()).collect();
        (!values.is_empty()).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkboxes_are_lists_and_empty_texts_are_absent() {
        let sent = [("a", "1"), ("a", "2"), ("b", " "), ("c", " x ")];
        let sent = Sent(sent.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert_eq!((sent.all("a"), sent.all("z")), (Some(vec!["1", "2"]), None));
        assert_eq!((sent.optional("b"), sent.text("c"), sent.text("z")), (None, "x", ""));
    }
}
