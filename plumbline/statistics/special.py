"""``scipy.special``, loaded when one of its functions is first called: that takes longer than most commands."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """A function of ``scipy.special``."""
    from scipy import special  # only here

    return getattr(special, name)
