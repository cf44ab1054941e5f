"""Extension points: what extras add to the core, by the table in :mod:`plumbline.extras`.

The core declares a point and asks it for its additions; without the folder ``extras/`` there are none, and the core
works. Nothing else in the core reaches an extra.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from plumbline.base.errors import PlumbError

Parameters = ParamSpec("Parameters")
Added = TypeVar("Added")
EXTRAS = "plumbline.extras"


def table(name: str) -> Mapping[str, Any]:
    """The table ``name`` of the extras; empty where none is installed."""
    if importlib.util.find_spec(EXTRAS) is None:
        return {}
    entries: Mapping[str, Any] = getattr(importlib.import_module(EXTRAS), name)
    return entries


def load(place: str) -> Any:
    """The module, or its member, that ``MODULE`` or ``MODULE:MEMBER`` below the extras names."""
    module, _, member = place.partition(":")
    loaded = importlib.import_module(f"{EXTRAS}.{module}")
    return getattr(loaded, member) if member else loaded


class Extension(Generic[Parameters, Added]):
    """The point of that ``name``: a call returns what each extra adds there, in the order of the table."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> list[Added]:
        """The additions for these arguments; an extra is loaded only now."""
        return [load(place)(*arguments, **keywords) for place in table("ADDITIONS").get(self.name, ())]

    def first(self, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Added:
        """The addition of the first extra; raises :class:`PlumbError` where none is installed that adds it."""
        for place in table("ADDITIONS").get(self.name, ()):
            added: Added = load(place)(*arguments, **keywords)
            return added
        raise PlumbError(f"no extra for {self.name}", EXTRAS, "install the whole package")
