"""Post the gate's Markdown, plumb-ci/gate.md, under the merge request; no token is ever printed.

The pipelines have this file in a job of its own, which has the token and nothing of the checkout: what the gate's job
leaves is a text by strangers. GitLab: PLUMB_COMMENT_TOKEN, an access token of the project with the scope api. GitHub:
the job's own GITHUB_TOKEN with pull-requests: write. Without a token nothing is sent, and the output says so. A comment
that was posted before is replaced, so that a merge request has one, the newest. Standard library only.
"""

import http.client
import json
import os
import re
import stat
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

FILE = "plumb-ci/gate.md"
#: the first line of a comment, by which it is found again
MARK = "<!-- plumbline gate -->"
#: both hosts refuse longer comments than about this (characters)
LONGEST = 60_000
TIMEOUT_S = 30
#: comments that are searched for an older one
PAGE = 100


class Refused(Exception):
    """Why nothing was posted, in one line."""


class Place(NamedTuple):
    """Where comments are listed and made, how one is edited (``{}``: its id), and the headers that allow it."""

    all: str
    one: str
    edit: str
    headers: dict[str, str]


def main(folder: Path) -> int:
    """Post :data:`FILE` below ``folder``; returns 0, also without a token, and 3 where posting failed."""
    try:
        where = place(os.environ)
        print("plumb ci: no token, so no comment" if where is None else post(where, read(folder)))
    except Refused as error:
        print(f"plumb ci: {error}", file=sys.stderr)
        return 3
    return 0


def read(folder: Path) -> str:
    """The text of :data:`FILE` below ``folder``. Raises :class:`Refused` for anything but a file in it."""
    file = folder / FILE
    try:
        if file.resolve() != folder.resolve() / FILE or not stat.S_ISREG(file.lstat().st_mode):
            raise Refused(f"{FILE} is not a file of the gate's job")
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(LONGEST + 1)
    except OSError as error:
        raise Refused(f"cannot read {FILE}: {error.strerror}") from None


def tame(text: str) -> str:
    """``text`` as no host acts on it: it names nobody (``@all``), commands nothing (``/merge``) and is what it shows.

    Behind a letter or digit, as in names of stacks, ``@`` names nobody. A word joiner, which has no width, parts the
    signs from what they would act on.
    """
    shown = "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)
    return re.sub(r"(?m)(?<![A-Za-z0-9_])@|^\s*(?=/)", lambda match: f"{match[0]}\u2060", shown)


def place(environment: Mapping[str, str]) -> "Place | None":
    """Where to post, by the variables of the pipeline; None without a token.

    Raises :class:`Refused` where another variable is missing, or the API has no https address.
    """
    if token := environment.get("PLUMB_COMMENT_TOKEN"):
        parts = [_need(environment, name) for name in ("CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")]
        project, request = (urllib.parse.quote(part, safe="") for part in parts[1:])
        notes = f"{_checked(parts[0])}/projects/{project}/merge_requests/{request}/notes"
        return Place(notes, f"{notes}/{{}}", "PUT", {"PRIVATE-TOKEN": token})
    if token := environment.get("GITHUB_TOKEN"):
        parts = [_need(environment, name) for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY", "PLUMB_CI_REQUEST")]
        repository, number = urllib.parse.quote(parts[1]), urllib.parse.quote(parts[2], safe="")
        issues = f"{_checked(parts[0])}/repos/{repository}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        return Place(f"{issues}/{number}/comments", f"{issues}/comments/{{}}", "PATCH", headers)
    return None


def post(where: Place, text: str) -> str:
    """Make or replace the comment; the text of its :class:`Refused` holds neither the token nor the answer."""
    body = f"{MARK}\n{tame(text)}"
    if len(body) > LONGEST:
        body = body[:LONGEST].rsplit("\n", 1)[0] + "\n\nCut here: all of it is in the job's artefacts.\n"
    if not isinstance(listed := _ask("GET", f"{where.all}?per_page={PAGE}", where.headers), list):
        raise Refused("the answer is not a list of comments: the file is an artefact of the job, post it yourself")
    comments = [item for item in listed if isinstance(item, dict)]
    old = next((item.get("id") for item in comments if str(item.get("body", "")).startswith(MARK)), None)
    if not isinstance(old, int):
        _ask("POST", where.all, where.headers, {"body": body})
        return "plumb ci: comment posted"
    _ask(where.edit, where.one.format(old), where.headers, {"body": body})
    return "plumb ci: comment replaced"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: the token would go to where it points."""

    def redirect_request(self, *_: Any) -> None:
        """None: do not follow."""


def _ask(method: str, address: str, headers: dict[str, str], body: "dict[str, str] | None" = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 (the scheme is checked in `place`)
        address, data=data, method=method, headers={**headers, "Content-Type": "application/json"}
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise Refused(f"the comment was refused with status {error.code}: check the token") from None
    except (OSError, ValueError, http.client.HTTPException):
        raise Refused("no answer, or none that can be read: check that the API can be reached") from None


def _need(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise Refused(f"{name} is not set: comments are posted from a merge request's job only")
    return value


def _checked(address: str) -> str:
    if not address.startswith(("https://", "http://127.0.0.1:")):
        raise Refused("the address of the API is not https: a token is not sent in the clear")
    return address.rstrip("/")


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
