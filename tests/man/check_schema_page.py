#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_schema_page.py PAGE SCHEMA PROGRAM: the page has an entry for each key of the
JSON Schema and no other, and the first sentence of each says what the schema
has of type, range and default; PROGRAM takes each of its examples. Where groff
is installed it also formats the page without a warning.

    check_schema_page.py --print SCHEMA prints these sentences.
"""

import json
import re
import subprocess
import sys
import tempfile

import check_page


def value(node):
    """A default as the page has it."""
    return json.dumps(node["default"])


def sentence(node):
    """What an entry begins with."""
    words = node.get("enum") or node.get("items", {}).get("enum")
    if node.get("type") == "integer":
        kind = f"A number from {node['minimum']} to {node['maximum']}"
    elif node.get("type") == "boolean":
        kind = "true or false"
    elif node.get("type") == "array":
        kind = "A list of " + (", ".join(words) if words else "texts")
        if node["items"].get("anyOf"):
            kind = "A list of texts or objects"
    elif words:
        kind = "One of " + ", ".join(words)
    elif "/" in node.get("pattern", ""):
        kind = "An absolute path or nothing"
    else:
        kind = "A text"
    if "default" not in node:
        return kind + "; it must be there."
    return f"{kind}; {value(node)} if not given."


def entries(schema, node, prefix=""):
    """Key -> sentence, of the keys with values and of the objects in lists."""
    found = {}
    for name, child in node.get("properties", {}).items():
        if "$ref" in child:
            target = schema
            for part in child["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            child = {**target, "pattern": ""}
        if "properties" in child:
            found |= entries(schema, child, prefix + name + ".")
            continue
        found[prefix + name] = sentence(child)
        for choice in child.get("items", {}).get("anyOf", []):
            found |= entries(schema, choice, f"{prefix}{name}[].")
    return found


def page_entries(text):
    found = {}
    for match in re.finditer(r"(?m)^\.It Li (\S+)\n(.*)$", text):
        found[match[1]] = match[2]
    return found


def check_examples(text, program):
    """1 if the program refuses one of the page's examples."""
    examples = re.findall(r"(?ms)^(\{$.*?^\}$)", text)
    assert len(examples) >= 3, examples
    status = 0
    for example in examples:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(example)
            file.flush()
            done = subprocess.run([program, "--check-config", "--config",
                                   file.name], check=False, text=True,
                                  capture_output=True)
        if done.returncode != 0:
            print(example, done.stderr)
            status = 1
    return status


def main():
    page, schema_path, *programs = sys.argv[1:]
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    wanted = entries(schema, schema)
    assert len(wanted) > 20, wanted
    if page == "--print":
        for key, text in wanted.items():
            print(f".It Li {key}\n{text}")
        return 0
    with open(page, encoding="utf-8") as file:
        text = file.read()
    there = page_entries(text)
    status = 0
    for key in sorted(wanted.keys() | there.keys()):
        if wanted.get(key) != there.get(key):
            print(f"{key}:\n  schema: {wanted.get(key)}\n"
                  f"  page:   {there.get(key)}")
            status = 1
    for program in programs:
        status |= check_examples(text, program)
    warnings = check_page.formatting_warnings(page)
    if warnings:
        print(warnings)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
