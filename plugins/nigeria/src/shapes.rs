//! The published fields of each identity type, one list for both upstreams. The alternative names
//! are those of Prembly and Dojah, unless they differ only in spelling.

mod nin;

use tollhouse_plugin::record::Kind::{Date, Email, Expiry, Image, Phone, Text, YesOrNo};
use tollhouse_plugin::record::{Field, Shape};

pub(crate) use nin::NIN;

const fn shape(fields: &'static [Field]) -> Shape {
    Shape { calling_code: "234", fields, contact: true }
}

const IMAGES: &[&str] = &["photo", "picture", "base64_image"];

pub(crate) const BVN: Shape = shape(&[
    Field::new("first_name", Text, &[]),
    Field::new("last_name", Text, &[]),
    Field::new("middle_name", Text, &[]),
    Field::new("date_of_birth", Date, &[]),
    Field::new("registration_date", Date, &[]),
    Field::new("enrollment_bank", Text, &[]),
    Field::new("enrollment_branch", Text, &[]),
    Field::new("email", Email, &[]),
    Field::new("gender", Text, &[]),
    Field::new("level_of_account", Text, &[]),
    Field::new("lga_of_origin", Text, &[]),
    Field::new("lga_of_residence", Text, &[]),
    Field::new("marital_status", Text, &[]),
    Field::new("name_on_card", Text, &[]),
    Field::new("nationality", Text, &[]),
    Field::new("phone_number", Phone, &["phone_number1"]),
    Field::new("phone_number2", Phone, &[]),
    Field::new("residential_address", Text, &[]),
    Field::new("state_of_origin", Text, &[]),
    Field::new("state_of_residence", Text, &[]),
    Field::new("title", Text, &[]),
    Field::new("watch_listed", YesOrNo, &[]),
    Field::new("image", Image, IMAGES),
]);

pub(crate) const DRIVERS_LICENSE: Shape = shape(&[
    Field::new("first_name", Text, &[]),
    Field::new("last_name", Text, &["surname"]),
    Field::new("middle_name", Text, &["othername", "othernames"]),
    Field::new("gender", Text, &[]),
    Field::new("issued_date", Date, &["issue_date", "date_of_issue"]),
    Field::new("expiry_date", Expiry, &["date_of_expiry", "expiration_date", "validity"]),
    Field::new("issued_at", Text, &["state_of_issue", "issue_place"]),
    Field::new("image", Image, IMAGES),
]);

pub(crate) const PASSPORT: Shape = shape(&[
    Field::new("first_name", Text, &["current_first_name"]),
    Field::new("last_name", Text, &["surname", "current_last_name"]),
    Field::new("middle_name", Text, &["other_names", "current_middle_name"]),
    Field::new(
        "date_of_birth",
        Date,
        &["dob", "current_date_of_birth_label", "current_date_of_birth"],
    ),
    Field::new("gender", Text, &["current_gender"]),
    Field::new("issued_date", Date, &["date_of_issue"]),
    Field::new("expiry_date", Expiry, &[]),
    Field::new("issued_at", Text, &["issue_place"]),
    Field::new("image", Image, IMAGES),
    Field::new("signature", Image, &[]),
    Field::new("phone_number", Phone, &["mobile"]),
]);

pub(crate) const VOTERS_CARD: Shape = shape(&[
    Field::new("vin", Text, &["voter_identification_number"]),
    Field::new("full_name", Text, &[]),
    Field::new("first_name", Text, &[]),
    Field::new("last_name", Text, &["surname"]),
    Field::new("gender", Text, &[]),
    Field::new("occupation", Text, &[]),
    Field::new("date_of_birth", Date, &[]),
    Field::new("state", Text, &[]),
    Field::new("lga", Text, &["local_government"]),
    Field::new("registration_area_ward", Text, &[]),
    Field::new("polling_unit", Text, &[]),
    Field::new("polling_unit_code", Text, &[]),
    Field::new("time_of_registration", Text, &[]),
    Field::new("phone_number", Phone, &["phone"]),
    Field::new("address", Text, &[]),
    Field::new("image", Image, IMAGES),
]);

/// A firm's e-mail address is published but never used for one-time passwords.
pub(crate) const CAC: Shape = Shape {
    contact: false,
    ..shape(&[
        Field::new("rc_number", Text, &[]),
        Field::new("company_name", Text, &[]),
        Field::new("state", Text, &[]),
        Field::new("company_status", Text, &[]),
        Field::new("city", Text, &[]),
        Field::new("branch_address", Text, &[]),
        Field::new("lga", Text, &[]),
        Field::new("email", Email, &["email_address"]),
    ])
};
