"""Post the gate's Markdown under the merge request, where the job was given a token; no token is ever printed.

Run as ``python -m plumbline.ci.comment FILE``. GitLab: ``PLUMB_COMMENT_TOKEN``, an access token of the project with the
scope ``api``. GitHub: the job's own ``GITHUB_TOKEN`` with ``pull-requests: write``. Without a token nothing is sent,
and the job's output says so. A comment that was posted before is replaced, so that a merge request has one, the newest.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.base.errors import PlumbError

#: the first line of a comment, by which it is found again
MARK = "<!-- plumbline gate -->"
#: both hosts refuse longer comments than about this (characters)
LONGEST = 60_000
TIMEOUT_S = 30
#: comments that are searched for an older one
PAGE = 100


@dataclass(frozen=True)
class Place:
    """Where comments are listed and made, how one is edited (``{}``: its id), and the headers that allow it."""

    all: str
    one: str
    edit: str
    headers: dict[str, str]


def main(arguments: list[str]) -> int:
    """Post the file that ``arguments`` name; returns 0, also without a token, and 3 where posting failed."""
    try:
        if len(arguments) != 1:
            raise PlumbError("no file to post", "plumbline.ci.comment", "name the gate's Markdown")
        text = Path(arguments[0]).read_text(encoding="utf-8")
        where = place(os.environ)
        print("plumb ci: no token, so no comment" if where is None else post(where, text))
    except OSError as error:
        print(f"plumb: cannot read: {error.strerror} ({error.filename})", file=sys.stderr)
        return 3
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 3
    return 0


def place(environment: Mapping[str, str]) -> Place | None:
    """Where to post, by the variables of the pipeline; None without a token.

    Raises :class:`PlumbError` where another variable is missing, or the API has no https address.
    """
    get = environment.get
    if token := get("PLUMB_COMMENT_TOKEN"):
        parts = [_need(environment, name) for name in ("CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")]
        project, request = (urllib.parse.quote(part, safe="") for part in parts[1:])
        notes = f"{_checked(parts[0])}/projects/{project}/merge_requests/{request}/notes"
        return Place(notes, f"{notes}/{{}}", "PUT", {"PRIVATE-TOKEN": token})
    if token := get("GITHUB_TOKEN"):
        parts = [_need(environment, name) for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY", "PLUMB_CI_REQUEST")]
        repository, number = urllib.parse.quote(parts[1]), urllib.parse.quote(parts[2], safe="")
        issues = f"{_checked(parts[0])}/repos/{repository}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        return Place(f"{issues}/{number}/comments", f"{issues}/comments/{{}}", "PATCH", headers)
    return None


def post(where: Place, text: str) -> str:
    """Make or replace the comment; the text of its :class:`PlumbError` holds neither the token nor the answer."""
    body = f"{MARK}\n{text}"
    if len(body) > LONGEST:
        body = body[:LONGEST].rsplit("\n", 1)[0] + "\n\nCut here: all of it is in the job's artefacts.\n"
    listed = _ask("GET", f"{where.all}?per_page={PAGE}", where.headers)
    if not isinstance(listed, list):
        raise PlumbError(
            "the answer is not a list of comments", "plumb ci", "the file is an artefact of the job: post it yourself"
        )
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


def _ask(method: str, address: str, headers: dict[str, str], body: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 (the scheme is checked in `place`)
        address, data=data, method=method, headers={**headers, "Content-Type": "application/json"}
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise PlumbError(f"the comment was refused with status {error.code}", "plumb ci", "check the token") from None
    except (OSError, ValueError, http.client.HTTPException):
        raise PlumbError(
            "no answer, or none that can be read", "plumb ci", "check that its API can be reached"
        ) from None


def _need(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise PlumbError(f"{name} is not set", "plumb ci", "post comments from a merge request's job only")
    return value


def _checked(address: str) -> str:
    if not address.startswith(("https://", "http://127.0.0.1:")):
        raise PlumbError("the address of the API is not https", "plumb ci", "a token is not sent in the clear")
    return address.rstrip("/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
