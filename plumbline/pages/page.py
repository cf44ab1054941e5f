"""One HTML file from the data, the assets and the chart library. It may neither load nor send anything.

The page's policy admits exactly the scripts and the style that are in it, by their sums; no text of a record can run,
whatever it contains. No Python code writes markup: elements are made by the scripts, from the data.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).resolve().parent / "assets"
LIBRARY = ASSETS / "vendor" / "echarts.min.js"
#: scripts that every page has, and those of each page, in the order they need each other; they share one scope
SHARED = ("format", "dom", "theme", "chart")
SCRIPTS: dict[str, tuple[str, ...]] = {
    "report": (
        "details",
        "findings",
        "overview",
        "stream",
        "curves",
        "collectives",
        "hybrids",
        "matrix",
        "launches",
        "history",
        "circumstances",
        "report",
    ),
    "gate": ("gate",),
}


def render(page: str, data: dict[str, Any]) -> str:
    """The page of the name ``page``, a key of :data:`SCRIPTS`, that shows ``data``; its title is ``data["title"]``.

    The same ``data`` gives the same text.
    """
    library = _script_text(LIBRARY.read_text(encoding="utf-8"))
    own = "\n".join((ASSETS / "js" / f"{name}.js").read_text(encoding="utf-8") for name in (*SHARED, *SCRIPTS[page]))
    own = _script_text(f"(() => {{\n'use strict';\n{own}}})();\n")
    style = (ASSETS / "style.css").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(data["title"]),
        "policy": policy([library, own], style),
        "style": style,
        "data": embed(data),
        "library": library,
        "script": own,
    }
    return _fill((ASSETS / "page.html").read_text(encoding="utf-8"), parts)


def policy(scripts: list[str], style: str) -> str:
    """The content security policy: these scripts, this style, pictures out of the page itself, and nothing else."""
    sums = " ".join(_sum(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {sums}; style-src {_sum(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def embed(data: Any) -> str:
    """``data`` as JSON that cannot end the script element around it: characters of markup are written as escapes."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _sum(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script_text(text: str) -> str:
    """``text`` if it can stand in a script element as it is."""
    lowered = text.lower()
    for word in ("</script", "<!--"):
        if word in lowered:
            raise ValueError(f"a script of the pages contains {word}")
    return text


def _fill(template: str, parts: dict[str, str]) -> str:
    """``template`` with each ``{{name}}`` replaced once; what is inserted is not looked at again."""
    pieces = []
    rest = template
    while "{{" in rest:
        before, _, rest = rest.partition("{{")
        name, _, rest = rest.partition("}}")
        pieces += [before, parts[name]]
    return "".join([*pieces, rest])
