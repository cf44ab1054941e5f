"""The hash of a Spack recipe that inherits from another one, without Spack: ``package_hash`` of a lock.

Source: ``PackageBase.content_hash`` and ``spack.util.package_hash`` of Spack 1.1.
"""

import ast
import base64
import hashlib

#: the calls in the class that the hash leaves out, because the rest of the lock says what they say
DIRECTIVES = ("depends_on", "version")


def _is_left_out(node, parent):
    value = node.value if isinstance(node, ast.Expr) else None
    directive = isinstance(value, ast.Call) and getattr(value.func, "id", "") in DIRECTIVES
    return isinstance(value, ast.Constant) or (directive and isinstance(parent, ast.ClassDef))


def versions(text):
    """Version -> arguments by name of each ``version(…)`` of the recipe ``text``."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    found = [call for call in calls if getattr(call.func, "id", "") == "version"]
    return {
        ast.literal_eval(call.args[0]): {part.arg: ast.literal_eval(part.value) for part in call.keywords}
        for call in found
    }


def of(text, version, patches):
    """The hash of the recipe ``text`` for a version that has an archive; ``patches`` are their SHA-256."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_left_out(part, node)] or [ast.Pass()]
    source = (ast.unparse(tree) + "\n").encode()
    parts = [
        versions(text)[version]["sha256"],
        base64.b32encode(hashlib.sha1(source, usedforsecurity=False).digest()).decode().lower(),
        *(f"{patch}:1" for patch in patches),
    ]
    return base64.b32encode(hashlib.sha256("".join(sorted(parts)).encode()).digest()).decode().lower()
