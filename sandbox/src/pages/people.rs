//! The section on the identity registers.

use maud::{Markup, html};

use crate::registers::{ENDINGS, identities};

/// Number in the links to pictures; a matching picture matches any person.
const SAMPLE: &str = "54651333604";
const PICTURES: [(&str, &str); 4] = [
    ("match", "a selfie that matches"),
    ("mismatch", "a selfie that does not"),
    ("noface", "a picture without a face"),
    ("document", "a document with the number on it"),
];

pub(super) fn section() -> Markup {
    html! {
        section {
            h2 { "People" }
            p {
                "Every well-formed number, at Prembly and at Dojah, belongs to a fictitious person derived from it: the "
                "same person each time, with the e-mail address " code { "NUMBER@people.example" } ". For a phone number, NUMBER is "
                "its digits with the country code. Messages to it appear in the mailbox."
            }
            details {
                summary { "Numbers that simulate failures" }
                ul {
                    @for (ending, meaning) in ENDINGS {
                        li { "Numbers ending in " code { (ending) } ": " (meaning) }
                    }
                }
            }
            details {
                summary { "Test identities, which never fail" }
                table {
                    tr { th { "Identity" } th { "Number" } th { "Name" } }
                    @for (kind, number, name) in identities() {
                        tr { td { (kind) } td.number { (number) } td { (name) } }
                    }
                }
            }
            p { "Pictures for any number (replace the digits): " }
            ul {
                @for (name, what) in PICTURES {
                    @let path = format!("/images/{name}-{SAMPLE}.jpg");
                    li { a href=(path) { (path) } ": " (what) }
                }
            }
        }
    }
}
