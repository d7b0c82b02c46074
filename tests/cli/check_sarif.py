"""check_sarif.py FILE: whether FILE keeps the rules of SARIF 2.1.0 that apply to what is in it. Each
object's properties are closed: one that the format does not have is an error (property bags excepted)."""
import json
import re
import sys

# object: {property: check}; "!" = required. A check is a type, a set of values, or a function.
TEXT, COUNT = str, lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0
POSITIVE = lambda v: COUNT(v) and v >= 1  # noqa: E731
LEVEL = {"none", "note", "warning", "error"}
URI = lambda v: isinstance(v, str) and re.fullmatch(  # noqa: E731
    r"(file://)?([A-Za-z0-9._~/+-]|%[0-9A-F]{2})+", v)


def obj(name):
    return lambda v: check(v, name)


def array(of):
    return lambda v: isinstance(v, list) and all(passes(of, x) for x in v)


BAG = dict
MESSAGE = {"text!": lambda v: isinstance(v, str) and v}
FORMAT = {
    "log": {"$schema": TEXT, "version!": {"2.1.0"}, "runs!": array(obj("run"))},
    "run": {"tool!": obj("tool"), "invocations": array(obj("invocation")), "results": array(obj("result")),
            "columnKind": {"utf16CodeUnits", "unicodeCodePoints"}},
    "tool": {"driver!": obj("driver")},
    "driver": {"name!": TEXT, "version": TEXT, "rules": array(obj("rule"))},
    "rule": {"id!": TEXT, "shortDescription": obj("message"), "fullDescription": obj("message"),
             "help": obj("message"), "defaultConfiguration": obj("configuration")},
    "configuration": {"level": LEVEL},
    "message": MESSAGE,
    "invocation": {"executionSuccessful!": bool, "toolExecutionNotifications": array(obj("notification"))},
    "notification": {"message!": obj("message"), "level": LEVEL},
    "result": {"ruleId": TEXT, "ruleIndex": COUNT, "level": LEVEL, "message!": obj("message"),
               "locations": array(obj("location")), "relatedLocations": array(obj("location")),
               "partialFingerprints": lambda v: isinstance(v, dict) and v and all(
                   isinstance(x, str) for x in v.values()),
               "rank": lambda v: isinstance(v, (int, float)) and 0 <= v <= 100, "properties": BAG},
    "location": {"id": COUNT, "physicalLocation": obj("physicalLocation"),
                 "logicalLocations": array(obj("logicalLocation"))},
    "physicalLocation": {"artifactLocation!": obj("artifactLocation"), "region": obj("region")},
    "artifactLocation": {"uri!": URI},
    "region": {"startLine!": POSITIVE},
    "logicalLocation": {"fullyQualifiedName": TEXT, "name": TEXT, "kind": TEXT},
}


def passes(rule, value):
    if isinstance(rule, set):
        return value in rule
    if isinstance(rule, type):
        return isinstance(value, rule)
    return bool(rule(value))


def check(value, name):
    rules = {key.rstrip("!"): rule for key, rule in FORMAT[name].items()}
    assert isinstance(value, dict), f"{name} is no object"
    for key in FORMAT[name]:
        assert not key.endswith("!") or key[:-1] in value, f"{name} lacks {key[:-1]}"
    for key, element in value.items():
        assert key in rules, f"{name} has no property {key}"
        assert passes(rules[key], element), f"{name}.{key} cannot be {json.dumps(element)[:60]}"
    return True


with open(sys.argv[1], encoding="utf-8") as file:
    log = json.load(file)
check(log, "log")
for run in log["runs"]:
    rules = run["tool"]["driver"].get("rules", [])
    ids = [rule["id"] for rule in rules]
    assert len(set(ids)) == len(ids), "rule ids are not unique"
    prints = set()
    for result in run.get("results", []):
        assert "ruleId" in result or "ruleIndex" in result, "a result without a rule"
        if "ruleIndex" in result:
            assert result["ruleIndex"] < len(rules), "ruleIndex is out of range"
            assert result.get("ruleId") == ids[result["ruleIndex"]], "ruleId and ruleIndex differ"
        related = [location.get("id") for location in result.get("relatedLocations", [])]
        assert len(set(related)) == len(related), "location ids are not unique"
