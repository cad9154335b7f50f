"""Rules that the OpenAPI documents state in prose only."""

import schemathesis


@schemathesis.serializer("application/wasm", "*/*")
def as_text(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_load_schema(_context, document):
    """An empty optional string counts as absent, regardless of its other rules."""
    for schema in document["components"]["schemas"].values():
        required = schema.get("required", [])
        for name, field in schema.get("properties", {}).items():
            if name not in required and "string" in field.get("type", []):
                rules = {rule: field.pop(rule) for rule in ("enum", "format", "pattern") if rule in field}
                if rules:
                    field["anyOf"] = [rules, {"maxLength": 0}]


@schemathesis.hook
def filter_query(_context, query):
    """An empty parameter counts as absent, and of a repeated one the last counts: neither violates a rule."""
    return not any(value in ("", {}, None) or isinstance(value, list) for value in (query or {}).values())
