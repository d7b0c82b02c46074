"""check_schema.py SCHEMA FILE [closed]: whether FILE is what the JSON schema says. Knows the words that
schema.json uses and refuses others. "closed": a key that the schema does not describe is an error."""
import json
import re
import sys

KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "items",
         "additionalProperties", "enum", "const", "minimum", "maximum", "minItems", "maxItems", "pattern"}
TYPES = {"object": lambda v: isinstance(v, dict), "array": lambda v: isinstance(v, list),
         "string": lambda v: isinstance(v, str), "null": lambda v: v is None,
         "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
         "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
         "boolean": lambda v: isinstance(v, bool)}


def check(schema, value, at, root, closed):
    def fail(why):
        raise SystemExit(f"{at}: {why}: {json.dumps(value)[:80]}")
    if unknown := set(schema) - KNOWN:
        raise SystemExit(f"the schema uses words that are not checked: {unknown}")
    if "$ref" in schema:
        target = root
        for step in schema["$ref"].split("/")[1:]:
            target = target[step]
        check(target, value, at, root, closed)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[t](value) for t in types):
        fail(f"is no {' or '.join(types)}")
    if "const" in schema and value != schema["const"]:
        fail(f"is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        fail(f"is none of {schema['enum']}")
    if TYPES["number"](value):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            fail("is out of range")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        fail(f"does not match {schema['pattern']}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            fail("has the wrong number of elements")
        for i, element in enumerate(value):
            check(schema.get("items", {}), element, f"{at}[{i}]", root, closed)
    if isinstance(value, dict) and "$ref" not in schema:
        described = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                fail(f"lacks {key}")
        for key, element in value.items():
            if key in described:
                check(described[key], element, f"{at}.{key}", root, closed)
            elif "additionalProperties" in schema:
                check(schema["additionalProperties"], element, f"{at}.{key}", root, closed)
            elif closed:
                fail(f"has {key}, which the schema does not describe")


with open(sys.argv[1], encoding="utf-8") as file:
    rules = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    check(rules, json.load(file), "$", rules, len(sys.argv) > 3)
