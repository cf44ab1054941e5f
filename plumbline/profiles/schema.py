"""``python -m plumbline.profiles.schema`` writes ``plumbline/schemas/profile.json`` from the types of a profile."""

from __future__ import annotations

from pathlib import Path

from plumbline.profiles.model import Printed
from plumbline.records import schema


def text() -> str:
    """The JSON schema of a profile."""
    return schema.text(Printed)


if __name__ == "__main__":
    (Path(__file__).parents[1] / "schemas" / "profile.json").write_text(text(), encoding="utf-8")
