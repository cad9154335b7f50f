//! Types in WIT syntax.

use wasmtime::component::Type as Found;
use wit_parser::{Type, TypeDefKind};

use super::definition;

/// Formats a type of the contract, with its kind before a name.
pub fn contract_type_name(ty: &Type) -> String {
    if let Some(definition) = definition(ty) {
        return match (&definition.name, &definition.kind) {
            (Some(name), kind) => format!("{} {name}", kind.as_str()),
            (None, TypeDefKind::List(of)) => format!("list<{}>", contract_type_name(of)),
            (None, TypeDefKind::Option(of)) => format!("option<{}>", contract_type_name(of)),
            (None, kind) => kind.as_str().to_owned(),
        };
    }
    contract_primitive(ty).to_owned()
}

/// Formats a type of the component, which does not contain type names.
pub fn component_type_name(ty: &Found) -> String {
    let list = |names: Vec<&str>| names.join(", ");
    match ty {
        Found::List(of) => format!("list<{}>", component_type_name(&of.ty())),
        Found::Option(of) => format!("option<{}>", component_type_name(&of.ty())),
        Found::Record(of) => {
            format!("record {{ {} }}", list(of.fields().map(|f| f.name).collect()))
        }
        Found::Variant(of) => {
            format!("variant {{ {} }}", list(of.cases().map(|c| c.name).collect()))
        }
        Found::Enum(of) => format!("enum {{ {} }}", list(of.names().collect())),
        Found::Result(_) => "result".to_owned(),
        Found::Tuple(_) => "tuple".to_owned(),
        Found::Flags(_) => "flags".to_owned(),
        primitive_type => primitive_name(primitive_type).to_owned(),
    }
}

macro_rules! primitives {
    ($($name:literal $contract:ident $found:ident,)+) => {
        fn contract_primitive(ty: &Type) -> &'static str {
            match ty {
                $(Type::$contract => $name,)+
                Type::ErrorContext => "error-context",
                Type::Id(_) => "type",
            }
        }

        pub fn primitive_name(ty: &Found) -> &'static str {
            match ty {
                $(Found::$found => $name,)+
                _ => "another kind of type",
            }
        }
    };
}
primitives! {
    "bool" Bool Bool, "char" Char Char, "string" String String,
    "u8" U8 U8, "u16" U16 U16, "u32" U32 U32, "u64" U64 U64,
    "s8" S8 S8, "s16" S16 S16, "s32" S32 S32, "s64" S64 S64,
    "f32" F32 Float32, "f64" F64 Float64,
}
