"""JSON in few lines, for golden files: whatever fits into a line stands on one."""

import json
from typing import Any

#: characters of a line
WIDTH = 120


def fold(value: Any, depth: int = 0) -> str:
    """A JSON document; members that do not fit into one line together fill several."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(line) + depth <= WIDTH:
        return line
    members = value.items() if isinstance(value, dict) else [(None, member) for member in value]
    named = [("" if key is None else f"{json.dumps(key, ensure_ascii=False)}: ", member) for key, member in members]
    lines: list[str] = []
    for number, (name, member) in enumerate(named):
        part = f"{name}{fold(member, depth + 1)}{',' if number < len(named) - 1 else ''}"
        if lines and "\n" not in lines[-1] + part and depth + len(lines[-1]) + len(part) + 2 <= WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    inside = "\n".join(f"{' ' * (depth + 1)}{part}" for part in lines)
    return f"{line[0]}\n{inside}\n{' ' * depth}{line[-1]}"
