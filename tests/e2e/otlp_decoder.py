# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's profiles, read by a decoder that protoc makes of otlp.proto:
a second reader of the format, that knows nothing of the writer."""

import importlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def messages():
    """The module that protoc makes."""
    if "otlp_pb2" in sys.modules:
        return sys.modules["otlp_pb2"]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["protoc", "-I", HERE, "--python_out", directory,
                        os.path.join(HERE, "otlp.proto")], check=True)
        sys.path.insert(0, directory)
        try:
            return importlib.import_module("otlp_pb2")
        finally:
            sys.path.remove(directory)


def value_of(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


class Decoded:
    """A message as values: `resources` is a list of (attributes, profiles), a
    profile a dict with `type`, `period`, `samples`, ..., a sample (stack,
    values, attributes), a stack frames from the leaf on, and a frame (names,
    innermost first, file, type)."""

    def __init__(self, data):
        message = messages().ProfilesData()
        message.ParseFromString(data)
        # An unknown field would be lost here.
        message.DiscardUnknownFields()
        assert len(message.SerializeToString()) == len(data), "unknown fields"
        self.tables = message.dictionary
        self.check_zeroes()
        self.resources = [self.resource(one)
                          for one in message.resource_profiles]

    def check_zeroes(self):
        tables = self.tables
        assert tables.string_table[0] == ""
        for table in [tables.mapping_table, tables.location_table,
                      tables.function_table, tables.link_table,
                      tables.attribute_table, tables.stack_table]:
            assert table[0].ByteSize() == 0
        for table in [tables.string_table, tables.stack_table]:
            assert len({str(row) for row in table}) == len(table), "repeated"

    def text(self, index):
        return self.tables.string_table[index]

    def attributes(self, indices):
        assert 0 not in indices
        rows = [self.tables.attribute_table[index] for index in indices]
        found = {self.text(row.key_strindex): value_of(row.value)
                 for row in rows}
        assert len(found) == len(rows), "a key is there twice"
        return found

    def frame(self, index):
        assert index != 0
        location = self.tables.location_table[index]
        mapping = self.tables.mapping_table[location.mapping_index]
        functions = [self.tables.function_table[line.function_index]
                     for line in location.lines]
        assert location.mapping_index == 0 or (
            mapping.memory_start <= location.address < mapping.memory_limit)
        return (tuple(self.text(one.name_strindex) for one in functions),
                self.text(mapping.filename_strindex),
                self.attributes(location.attribute_indices).get(
                    "profile.frame.type"))

    def build_ids(self):
        return {(self.text(one.filename_strindex), self.attributes(
            one.attribute_indices).get("process.executable.build_id.gnu"))
                for one in self.tables.mapping_table[1:]}

    def sample(self, sample):
        stack = self.tables.stack_table[sample.stack_index]
        return (tuple(self.frame(at) for at in stack.location_indices),
                list(sample.values), self.attributes(sample.attribute_indices))

    def value_type(self, value_type):
        return (self.text(value_type.type_strindex),
                self.text(value_type.unit_strindex))

    def profile(self, profile):
        return {"type": self.value_type(profile.sample_type),
                "period_type": self.value_type(profile.period_type),
                "period": profile.period,
                "time": profile.time_unix_nano,
                "duration": profile.duration_nano,
                "samples": [self.sample(one) for one in profile.samples]}

    def resource(self, resource):
        attributes = {one.key: value_of(one.value)
                      for one in resource.resource.attributes}
        assert len(attributes) == len(resource.resource.attributes)
        scopes = resource.scope_profiles
        assert len(scopes) == 1 and scopes[0].scope.name == "ksym"
        self.scope = {one.key: value_of(one.value)
                      for one in scopes[0].scope.attributes}
        assert len(self.scope) == len(scopes[0].scope.attributes)
        return attributes, [self.profile(one) for one in scopes[0].profiles]
