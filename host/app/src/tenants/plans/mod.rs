//! Plans: the billing items, the feature of a plan that each belongs to, and their prices. The
//! default plan prices the items that a company's own plan does not name.

pub mod api;
mod store;

/// Features that a plan can include.
pub const FEATURES: [&str; 6] = ["cards", "identity", "otp", "payments", "recollections", "users"];

/// The fixed items with their features.
const FIXED_ITEMS: [(&str, &str); 6] = [
    ("customer.create", "users"),
    ("otp.email", "otp"),
    ("otp.sms", "otp"),
    ("recollection.card", "recollections"),
    ("recollection.collect", "recollections"),
    ("recollection.direct_debit", "recollections"),
];

/// Pattern of identity lookups, whose countries and types come from plugins.
const LOOKUP_PATTERN: &str = r"^identity\.[a-z0-9_]{1,50}\.[a-z0-9_]{1,50}(\.(face|image))?$";
const VARIANTS: [&str; 2] = ["face", "image"];

/// Returns the feature that a plan must include for this item; `None` if the item does not exist.
pub fn feature_of(item: &str) -> Option<&'static str> {
    let known = FIXED_ITEMS.iter().find(|(name, _)| *name == item).map(|(_, feature)| *feature);
    known.or_else(|| is_lookup(item).then_some("identity"))
}

/// Returns whether [`LOOKUP_PATTERN`] matches. Variants are not types: a type is missing before
/// them.
fn is_lookup(item: &str) -> bool {
    let is_name = |text: &str| {
        let is_usual = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        (1..=50).contains(&text.len()) && text.bytes().all(is_usual) && !VARIANTS.contains(&text)
    };
    match item.split('.').collect::<Vec<_>>()[..] {
        ["identity", country, kind] => is_name(country) && is_name(kind),
        ["identity", country, kind, variant] => {
            is_name(country) && is_name(kind) && VARIANTS.contains(&variant)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_billing_items_have_a_feature() {
        for (item, feature) in [
            ("otp.email", Some("otp")),
            ("otp.sms", Some("otp")),
            ("customer.create", Some("users")),
            ("recollection.card", Some("recollections")),
            ("recollection.direct_debit", Some("recollections")),
            ("recollection.collect", Some("recollections")),
            ("identity.nigeria.bvn", Some("identity")),
            ("identity.nigeria.drivers_license.face", Some("identity")),
            ("identity.ghana.ssnit.image", Some("identity")),
            ("otp.emial", None),
            ("otp", None),
            ("OTP.email", None),
            ("otp.email.face", None),
            ("identity.nigeria", None),
            ("identity.nigeria.face", None),
            ("identity.nigeria.bvn.voice", None),
            ("identity.nigeria.bvn.face.image", None),
            ("identity.Nigeria.bvn", None),
            ("identity..bvn", None),
            ("identity.nigeria.", None),
            ("", None),
        ] {
            assert_eq!(feature_of(item), feature, "{item}");
        }
    }
}
