//! Whose components a host takes: publishers, each known by the keys that it signs with.

pub(super) mod store;

use super::signature::{PublicKey, Signed};
use crate::store::{Result, Tx};

/// The publisher whose key signed a component, if a trusted one did.
pub async fn signer(tx: &mut Tx, component: &Signed) -> Result<Option<String>> {
    if component.signatures.is_empty() {
        return Ok(None);
    }
    let keys = store::all(tx).await?;
    let signer = keys.into_iter().find(|row| {
        let signs = |key: PublicKey| {
            component.signatures.iter().any(|signature| key.has_signed(&component.wasm, signature))
        };
        PublicKey::from_line(&row.key).is_some_and(signs)
    });
    Ok(signer.map(|row| row.name))
}

/// What is said of a component with this signer; `Err`: it is not taken.
pub fn judge(
    component: &Signed,
    signer: Option<&str>,
    takes_unsigned: bool,
) -> std::result::Result<String, String> {
    match (signer, component.signatures.is_empty(), takes_unsigned) {
        (Some(publisher), ..) => Ok(format!("by {publisher}")),
        (None, true, true) => Ok("none: this host takes unsigned components".to_owned()),
        (None, false, true) => {
            Ok("by nobody whom this host trusts: it counts as unsigned".to_owned())
        }
        (None, true, false) => Err("the component is not signed: its author signs it with \
             `tollhouse plugin sign`, or this host takes unsigned ones (plugin_unsigned)"
            .to_owned()),
        (None, false, false) => Err("the component is signed by nobody whom this host trusts: \
             name its author's key with `tollhouse publisher trust`"
            .to_owned()),
    }
}
