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
    let name = match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(_) => "type",
    };
    name.to_owned()
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
        primitive_type => primitive_name(primitive_type),
    }
}

pub fn primitive_name(ty: &Found) -> String {
    let name = match ty {
        Found::Bool => "bool",
        Found::U8 => "u8",
        Found::U16 => "u16",
        Found::U32 => "u32",
        Found::U64 => "u64",
        Found::S8 => "s8",
        Found::S16 => "s16",
        Found::S32 => "s32",
        Found::S64 => "s64",
        Found::Float32 => "f32",
        Found::Float64 => "f64",
        Found::Char => "char",
        Found::String => "string",
        _ => "another kind of type",
    };
    name.to_owned()
}
