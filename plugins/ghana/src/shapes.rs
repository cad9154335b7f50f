//! The published fields of each identity type: Prembly's names in snake_case.

use tollhouse_plugin::record::Kind::{Date, Expiry, Image, Text};
use tollhouse_plugin::record::{Field, Shape};

const fn shape(fields: &'static [Field]) -> Shape {
    Shape { calling_code: "233", fields, contact: true }
}

pub(crate) const PASSPORT: Shape = shape(&[
    Field::new("passport_no", Text, &[]),
    Field::new("first_name", Text, &[]),
    Field::new("last_name", Text, &[]),
    Field::new("middle_name", Text, &[]),
    Field::new("nationality", Text, &[]),
    Field::new("date_of_birth", Date, &[]),
    Field::new("gender", Text, &[]),
    Field::new("place_of_birth", Text, &[]),
    Field::new("place_of_issue", Text, &[]),
    Field::new("issue_date", Date, &[]),
    Field::new("expiry_date", Expiry, &[]),
    Field::new("picture", Image, &[]),
    Field::new("signature", Image, &[]),
]);

pub(crate) const SSNIT: Shape = shape(&[
    Field::new("fss_no", Text, &[]),
    Field::new("full_name", Text, &[]),
    Field::new("birth_date", Date, &[]),
    Field::new("sex", Text, &[]),
    Field::new("card_serial", Text, &[]),
    Field::new("photo", Image, &[]),
]);

pub(crate) const DRIVERS_LICENSE: Shape = shape(&[
    Field::new("name", Text, &[]),
    Field::new("date_of_birth", Date, &[]),
    Field::new("processing_center", Text, &[]),
    Field::new("class_of_licence", Text, &[]),
    Field::new("nationality", Text, &[]),
    Field::new("date_of_issue", Date, &[]),
    Field::new("expiry_date", Expiry, &[]),
    Field::new("certificate_date", Date, &[]),
    Field::new("certificate_of_competence", Text, &[]),
    Field::new("driver_image", Image, &[]),
    Field::new("pin", Text, &[]),
]);

pub(crate) const VOTERS_CARD: Shape = shape(&[
    Field::new("polling_station", Text, &[]),
    Field::new("voter_id", Text, &[]),
    Field::new("age", Text, &[]),
    Field::new("date_of_birth", Date, &[]),
    Field::new("sex", Text, &[]),
    Field::new("reg_date", Date, &[]),
    Field::new("full_name", Text, &[]),
    Field::new("picture", Image, &[]),
    Field::new("other_names", Text, &[]),
    Field::new("surname", Text, &[]),
]);
