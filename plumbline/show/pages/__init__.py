"""Pages for people: HTML files from data, assets and the chart library: alone, or many that share scripts and style.

A page alone may neither load nor send anything: its policy admits exactly the scripts and the style that are in it, by
their SHA-256. Pages of one folder take scripts and style from files in it, and may load nothing from elsewhere.
No text of a record can run, whatever it contains. No Python code writes markup: elements are made by the scripts, from
the data.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).resolve().parent / "assets"
LIBRARY = ASSETS / "vendor" / "echarts.min.js"
#: the scripts of a page; they share one scope, in which the first reads its data
SCRIPTS = ("dom", "theme", "chart", "tables", "drawer", "blocks", "page")
#: the sources that pages of one folder may load: their place, which browsers call 'self' or, on a disk, file:
BESIDE = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def render(data: dict[str, Any]) -> str:
    """The page that shows ``data``; its title is ``data["title"]``. The same ``data`` gives the same text."""
    parts = _parts()
    scripts = [_script_text(parts[use]) for use in ("library", "script")]
    return _page("inside", parts, data, policy(scripts, parts["style"]), "application/json", embed(data))


@dataclass(frozen=True)
class Shared:
    """The files that pages of one folder have in common: ``names`` by use, ``texts`` by name.

    A name has digits of the SHA-256 of its text: an older page never gets files that it was not made for.
    """

    names: dict[str, str]
    texts: dict[str, str]

    def render(self, data: dict[str, Any], way: str) -> str:
        """The page that shows ``data``, with style and scripts in files of their own.

        ``way`` is the relative path from the page to their folder. The data is compressed, which makes a page of a
        campaign about eight times smaller.
        """
        packed = base64.b64encode(gzip.compress(_json(data).encode(), mtime=0)).decode()
        return _page(
            "beside",
            {name: html.escape(way + file) for name, file in self.names.items()},
            data,
            BESIDE,
            "application/gzip",
            packed,
        )


def shared() -> Shared:
    """The files that pages need beside them."""
    texts = _parts()
    names = {
        use: f"{use}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{'css' if use == 'style' else 'js'}"
        for use, text in texts.items()
    }
    return Shared(names, {names[use]: text for use, text in texts.items()})


def _page(form: str, parts: dict[str, str], data: dict[str, Any], rules: str, kind: str, embedded: str) -> str:
    """The page; ``form`` says where its style and scripts are: ``inside`` it, or in files ``beside`` it."""
    whole = {
        "title": html.escape(data["title"]),
        "policy": rules,
        "kind": kind,
        "data": embedded,
        "style": _fill((ASSETS / f"{form}-style.html").read_text(encoding="utf-8"), parts),
        "scripts": _fill((ASSETS / f"{form}-scripts.html").read_text(encoding="utf-8"), parts),
    }
    return _fill((ASSETS / "page.html").read_text(encoding="utf-8"), whole)


def _parts() -> dict[str, str]:
    """Style, chart library and script of pages: the scripts share a scope that is theirs alone, and wait for data."""
    scripts = "\n".join((ASSETS / "js" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return {
        "style": (ASSETS / "style.css").read_text(encoding="utf-8"),
        "library": LIBRARY.read_text(encoding="utf-8"),
        "script": f"(async () => {{\n'use strict';\n{scripts}}})();\n",
    }


def policy(scripts: list[str], style: str) -> str:
    """The content security policy: these scripts, this style, pictures out of the page itself, and nothing else."""
    sums = " ".join(_sum(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {sums}; style-src {_sum(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def embed(data: Any) -> str:
    """``data`` as JSON that cannot end the script element around it: characters of markup are written as escapes."""
    return _json(data).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def _sum(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script_text(text: str) -> str:
    """``text`` if it can be in a script element as it is."""
    if end := re.search("</script|<!--", text, re.IGNORECASE):
        raise ValueError(f"a script of the pages contains {end[0]}")
    return text


def _fill(template: str, parts: dict[str, str]) -> str:
    """``template`` with each ``{{name}}`` replaced once; inserted text is not searched again."""
    return re.sub("{{(.*?)}}", lambda name: parts[name[1]], template)
