"""YAML as libyaml reads it: about ten times as fast as PyYAML alone, and every launch reads several files."""

from __future__ import annotations

from typing import Any

import yaml

#: most keys that merges (``<<``) copy in a file: merges of merges grow by powers
MOST_MERGED = 100_000


class _Bounded(yaml.constructor.SafeConstructor):
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


class _Plain(_Bounded, yaml.SafeLoader):
    """By PyYAML alone."""


#: PyYAML may have been built without libyaml
_FAST = type("_Fast", (_Bounded, yaml.CSafeLoader), {}) if hasattr(yaml, "CSafeLoader") else _Plain


def load(text: str) -> Any:
    """The document that ``text`` is, of YAML's plain types.

    Raises YAMLError in the words of PyYAML, RecursionError for what is nested too deeply, and ValueError, LookupError,
    AttributeError or TypeError for values and tags that cannot be read.
    """
    try:
        return yaml.load(text, _FAST)  # noqa: S506 (it is a safe loader)
    except yaml.YAMLError:
        return yaml.load(text, _Plain)  # noqa: S506
