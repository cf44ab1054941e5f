"""What pages show, found again in the blocks that describe it (plumbline/show/pages/blocks.py)."""

from typing import Any


def section(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The section ``name`` of a page."""
    (found,) = [one for one in document["sections"] if one["id"] == name]
    return dict(found)


def blocks(piece: Any, kind: str) -> list[dict[str, Any]]:
    """All blocks of a kind in ``piece``, in the order in which they are shown."""
    if isinstance(piece, dict):
        return ([piece] if piece.get("is") == kind else []) + blocks(list(piece.values()), kind)
    return [found for one in piece for found in blocks(one, kind)] if isinstance(piece, list | tuple) else []


def rows(piece: Any, number: int = 0) -> list[list[str]]:
    """The rows of a table in ``piece``, as texts."""
    return [[text(cell) for cell in row] for row in blocks(piece, "table")[number]["rows"]]


def called(piece: Any, caption: str) -> dict[str, Any]:
    """The table in ``piece`` whose caption begins so."""
    (found,) = [table for table in blocks(piece, "table") if table["caption"].startswith(caption)]
    return found


def text(piece: Any) -> str:
    """What a reader sees of ``piece``; its parts are parted by blanks."""
    if isinstance(piece, dict):
        return text(piece.get("pieces", piece.get("rows", ())))
    if isinstance(piece, list | tuple):
        return " ".join(shown for one in piece if (shown := text(one)))
    return "–" if piece is None else "" if piece is False else str(piece).strip()
