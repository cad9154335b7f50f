//! Describes differences between a component's types and the contract. The engine does not.
//!
//! The contract is `wit/v1` as built into this host. Parameter names may differ, field names not.

mod type_names;

use std::{iter, sync::LazyLock};

use wasmtime::component::{
    Component, Type as Found,
    types::{ComponentFunc, ComponentItem},
};
use wit_parser::{Function, Resolve, SourceMap, Type, TypeDef, TypeDefKind};

use self::type_names::{component_type_name, contract_type_name, primitive_name};
use super::v1::versioned_name;

const SOURCES: [(&str, &str); 9] = [
    ("disputes.wit", include_str!("../../../../../wit/v1/disputes.wit")),
    ("host.wit", include_str!("../../../../../wit/v1/host.wit")),
    ("identity.wit", include_str!("../../../../../wit/v1/identity.wit")),
    ("mandates.wit", include_str!("../../../../../wit/v1/mandates.wit")),
    ("payments.wit", include_str!("../../../../../wit/v1/payments.wit")),
    ("settlements.wit", include_str!("../../../../../wit/v1/settlements.wit")),
    ("sms.wit", include_str!("../../../../../wit/v1/sms.wit")),
    ("types.wit", include_str!("../../../../../wit/v1/types.wit")),
    ("worlds.wit", include_str!("../../../../../wit/v1/worlds.wit")),
];

static CONTRACT: LazyLock<Resolve> = LazyLock::new(|| {
    let mut sources = SourceMap::default();
    SOURCES.iter().for_each(|(path, text)| sources.push_str(path, *text));
    let parsed = sources.parse().map_err(|(_, error)| error).expect("the bindings parse it too");
    let mut contract = Resolve::default();
    contract.push_group(parsed).expect("the bindings resolve it too");
    contract
});

/// Returns one sentence per function that differs: `checkout.start: parameter order: record
/// checkout-order: field amount: expected record money, found u64`.
#[must_use]
pub fn all_differences(component: &Component) -> Vec<String> {
    let all = component.component_type();
    let export = |name: &str| Some(all.get_export(component.engine(), name)?.ty);
    let missing = Some("the function is missing");
    let mut differences = import_differences(component);
    differences.extend(interface_differences(component, export, missing));
    differences
}

/// Returns the same for imports. A component may import fewer functions than the contract has.
#[must_use]
pub fn import_differences(component: &Component) -> Vec<String> {
    let all = component.component_type();
    let import = |name: &str| Some(all.get_import(component.engine(), name)?.ty);
    interface_differences(component, import, None)
}

/// Compares the interfaces that `find` finds. `missing` is the difference of a missing function.
fn interface_differences(
    component: &Component,
    find: impl Fn(&str) -> Option<ComponentItem>,
    missing: Option<&str>,
) -> Vec<String> {
    let mut differences = Vec::new();
    for interface in CONTRACT.interfaces.iter().map(|(_, interface)| interface) {
        let name = interface.name.as_deref().unwrap_or_default();
        let Some(ComponentItem::ComponentInstance(found)) = find(&versioned_name(name)) else {
            continue;
        };
        for function in interface.functions.values() {
            let found = found.get_export(component.engine(), &function.name);
            let how = match found.map(|found| found.ty) {
                Some(ComponentItem::ComponentFunc(found)) => function_difference(function, &found),
                _ => missing.map(str::to_owned),
            };
            differences.extend(how.map(|how| format!("{name}.{}: {how}", function.name)));
        }
    }
    differences
}

fn function_difference(expected: &Function, found: &ComponentFunc) -> Option<String> {
    let (wanted, given) = (expected.params.len(), found.params().len());
    if wanted != given {
        return Some(format!("expected {wanted} parameters, found {given}"));
    }
    let mut parameters = expected.params.iter().zip(found.params());
    let parameter = parameters.find_map(|(expected, (_, found))| {
        type_difference(&expected.ty, &found)
            .map(|how| format!("parameter {}: {how}", expected.name))
    });
    let result = || optional_difference(expected.result.as_ref(), found.results().next().as_ref());
    parameter.or_else(|| result().map(|how| format!("result: {how}")))
}

/// Returns the first difference between two types, preceded by its path.
fn type_difference(expected: &Type, found: &Found) -> Option<String> {
    use TypeDefKind as Kind;
    let Some(definition) = definition(expected) else {
        return (contract_type_name(expected) != primitive_name(found))
            .then(|| mismatch(expected, found));
    };
    let within = |how: String| match &definition.name {
        Some(name) => format!("{} {name}: {how}", definition.kind.as_str()),
        None => how,
    };
    match (&definition.kind, found) {
        (Kind::List(expected), Found::List(found)) => type_difference(expected, &found.ty()),
        (Kind::Option(expected), Found::Option(found)) => type_difference(expected, &found.ty()),
        (Kind::Result(expected), Found::Result(found)) => {
            let ok = optional_difference(expected.ok.as_ref(), found.ok().as_ref());
            let err = || optional_difference(expected.err.as_ref(), found.err().as_ref());
            ok.or_else(|| err().map(|how| format!("error: {how}")))
        }
        (Kind::Tuple(tuple), Found::Tuple(types)) if tuple.types.len() == types.types().len() => {
            tuple.types.iter().zip(types.types()).find_map(|(e, f)| type_difference(e, &f))
        }
        (Kind::Record(record), Found::Record(fields)) => {
            let expected = record.fields.iter().map(|field| (&*field.name, Some(&field.ty)));
            let found = fields.fields().map(|field| (field.name, Some(field.ty)));
            member_difference("field", expected.collect(), found.collect()).map(within)
        }
        (Kind::Variant(variant), Found::Variant(cases)) => {
            let expected = variant.cases.iter().map(|case| (&*case.name, case.ty.as_ref()));
            let found = cases.cases().map(|case| (case.name, case.ty));
            member_difference("case", expected.collect(), found.collect()).map(within)
        }
        (Kind::Enum(cases), Found::Enum(names)) => {
            let expected = cases.cases.iter().map(|case| (&*case.name, None));
            member_difference(
                "case",
                expected.collect(),
                names.names().map(|name| (name, None)).collect(),
            )
            .map(within)
        }
        _ => Some(mismatch(expected, found)),
    }
}

/// Fields of a record or cases of a variant, in order.
type Members<'n, T> = Vec<(&'n str, Option<T>)>;

fn member_difference(
    what: &str,
    expected: Members<'_, &Type>,
    found: Members<'_, Found>,
) -> Option<String> {
    let lacks = |name: &str| !found.iter().any(|(found, _)| *found == name);
    if let Some((missing, _)) = expected.iter().find(|(name, _)| lacks(name)) {
        return Some(format!("{what} {missing} is missing"));
    }
    let known = |name: &str| expected.iter().any(|(expected, _)| *expected == name);
    if let Some((odd, _)) = found.iter().find(|(name, _)| !known(name)) {
        return Some(format!("{what} {odd} is not in the contract"));
    }
    iter::zip(&expected, &found).enumerate().find_map(|(at, ((name, expected), (other, found)))| {
        if name != other {
            return Some(format!("{what} {}: expected {name}, found {other}", at + 1));
        }
        optional_difference(*expected, found.as_ref()).map(|how| format!("{what} {name}: {how}"))
    })
}

fn optional_difference(expected: Option<&Type>, found: Option<&Found>) -> Option<String> {
    match (expected, found) {
        (None, None) => None,
        (Some(expected), Some(found)) => type_difference(expected, found),
        (Some(expected), None) => {
            Some(format!("expected {}, found nothing", contract_type_name(expected)))
        }
        (None, Some(found)) => {
            Some(format!("expected nothing, found {}", component_type_name(found)))
        }
    }
}

fn mismatch(expected: &Type, found: &Found) -> String {
    format!("expected {}, found {}", contract_type_name(expected), component_type_name(found))
}

/// Returns the definition of a type, aliases resolved; `None` for a primitive.
fn definition(ty: &Type) -> Option<&'static TypeDef> {
    let Type::Id(id) = ty else { return None };
    match &CONTRACT.types[*id] {
        TypeDef { kind: TypeDefKind::Type(used), .. } => definition(used),
        definition => Some(definition),
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;

    use super::*;

    /// Matches any byte.
    const ANY: u8 = 0xff;
    const U64: u8 = 0x77;

    /// Compiles a component with bytes of its types replaced by equally many others.
    fn built_with(wasm: &[u8], was: &[u8], is: &[u8]) -> Component {
        assert_eq!(was.len(), is.len());
        let fits = |at: &usize| wasm[*at..].iter().zip(was).all(|(b, w)| *w == ANY || b == w);
        let places: Vec<usize> = (0..wasm.len() - was.len()).filter(fits).collect();
        assert!(!places.is_empty(), "{}", String::from_utf8_lossy(was));
        let mut wasm = wasm.to_vec();
        for at in places {
            wasm[at..at + is.len()].copy_from_slice(is);
        }
        Component::new(&Engine::default(), wasm).unwrap()
    }

    #[test]
    fn built_in_components_match_the_contract() {
        for component in artifacts::BUILT_IN {
            let compiled = Component::new(&Engine::default(), component.wasm).unwrap();
            assert_eq!(all_differences(&compiled), Vec::<String>::new(), "{component:?}");
        }
    }

    #[test]
    fn a_difference_is_reported_with_its_path() {
        let amount = |ty: u8| [b"\x06amount", &[ty][..], b"\x05email"].concat();
        for (was, is, expected) in [
            (
                &amount(ANY)[..],
                &amount(U64)[..],
                "checkout.start: parameter order: record checkout-order: field amount: expected record money, found u64",
            ),
            (
                b"\x0fsave-instrument\x7f",
                b"\x0fsave-instrument\x7d",
                "checkout.start: parameter order: record checkout-order: field save-instrument: expected bool, found u8",
            ),
            (
                b"save-instrument",
                b"keep-instrument",
                "checkout.start: parameter order: record checkout-order: field save-instrument is missing",
            ),
            (
                b"\x08reversed",
                b"\x08returned",
                "verification.verify: result: record payment: field status: enum payment-status: case reversed is missing",
            ),
            (
                b"\x09malformed",
                b"\x09misshapen",
                "notifications.parse: result: error: variant refusal: case malformed is missing",
            ),
            (
                b"timeout-ms",
                b"patience-s",
                "http.send: parameter request: record request: field timeout-ms is missing",
            ),
            (b"verify", b"verily", "verification.verify: the function is missing"),
        ] {
            let found = all_differences(&built_with(artifacts::SPROUT, was, is));
            assert!(found.iter().any(|difference| difference == expected), "{expected}: {found:?}");
        }
    }
}
