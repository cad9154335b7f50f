"""What the documents say in words only."""

import schemathesis


@schemathesis.serializer("application/wasm", "*/*")
def as_text(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_load_schema(_context, document):
    """Where a text is optional, an empty one counts as absent, whatever else the text must be."""
    for schema in document["components"]["schemas"].values():
        required = schema.get("required", [])
        for name, field in schema.get("properties", {}).items():
            if name not in required:
                may_be_empty(field)
    operations = (operation for path in document["paths"].values() for operation in path.values())
    for parameter in (parameter for operation in operations for parameter in operation.get("parameters", [])):
        if parameter.get("in") == "query" and not parameter.get("required"):
            may_be_empty(parameter["schema"])


def may_be_empty(field):
    if "string" in field.get("type", []):
        rules = {rule: field.pop(rule) for rule in ("enum", "format", "pattern") if rule in field}
        if rules:
            field["anyOf"] = [rules, {"maxLength": 0}]
