"""The loaders of YAML that we read: plain types only, and no few bytes become gigabytes.

A module of its own, because plans and witnesses are read without PyYAML.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

#: most keys that merges (``<<``) copy in a file: merges of merges grow by powers
MOST_MERGED = 100_000


class Bounded(yaml.constructor.SafeConstructor):
    """A safe constructor that copies no more than :data:`MOST_MERGED` keys."""

    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put the keys that are merged into ``node`` among its own; raises YAMLError."""
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                continue
            for mapping in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(mapping, yaml.MappingNode):
                    self.flatten_mapping(mapping)  # after this it has all its keys itself
                    self._merged += len(mapping.value)
                    if self._merged > MOST_MERGED:
                        message = f"merges copy more than {MOST_MERGED} keys"
                        raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
        super().flatten_mapping(node)


class Plain(Bounded, yaml.SafeLoader):
    """By PyYAML alone."""


#: PyYAML may have been built without libyaml
FAST: Any = type("Fast", (Bounded, yaml.CSafeLoader), {}) if hasattr(yaml, "CSafeLoader") else Plain
# YAML 1.2 and people write 3.84e10, which is a text for PyYAML. With a point it is no hash of a commit.
for _loader in (FAST, Plain):
    _loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+\.[0-9]*[eE][0-9]+$"), [*"-+0123456789"]
    )


def load(text: str) -> Any:
    """The document that ``text`` is, by libyaml: about ten times as fast as PyYAML alone, whose words errors have."""
    try:
        return yaml.load(text, FAST)  # noqa: S506 (it is a safe loader)
    except yaml.YAMLError:
        return yaml.load(text, Plain)  # noqa: S506
