//! Whom the identity registers know, for people.

use maud::{Markup, html};

use crate::registers::{ENDINGS, identities};

/// Somebody to look at; the picture matches whomever it is compared with.
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
                "Every well-formed number, at Prembly and at Dojah, belongs to somebody who is made up from it: the "
                "same person each time, with the e-mail address " code { "NUMBER@people.example" } " (a phone's is of "
                "its digits with the country code), which leads to the mailbox."
            }
            details {
                summary { "Numbers with which something goes wrong" }
                ul {
                    @for (ending, meaning) in ENDINGS {
                        li { "Numbers that end in " code { (ending) } ": " (meaning) }
                    }
                }
            }
            details {
                summary { "Test identities, with which nothing does" }
                table {
                    tr { th { "Identity" } th { "Number" } th { "Name" } }
                    @for (kind, number, name) in identities() {
                        tr { td { (kind) } td.number { (number) } td { (name) } }
                    }
                }
            }
            p { "Pictures for any number: " }
            ul {
                @for (name, what) in PICTURES {
                    @let path = format!("/images/{name}-{SAMPLE}.jpg");
                    li { a href=(path) { (path) } ": " (what) }
                }
            }
        }
    }
}
