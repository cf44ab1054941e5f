"""A stand-in for the part of GitLab and GitHub that keeps the comments of merge requests."""

import http.server
import json
import threading

import pytest


@pytest.fixture
def host():
    """A server that lists, adds and edits comments; it answers with ``status``, or a redirect to ``redirect``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self):
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            server.asked.append((self.command, self.path, dict(self.headers), body))
            self.send_response(302 if server.redirect else server.status)
            if server.redirect:
                self.send_header("Location", server.redirect)
            self.end_headers()
            self.wfile.write(json.dumps(server.comments).encode())

        do_GET = do_POST = do_PUT = do_PATCH = _answer

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.comments, server.status, server.redirect = [], [], 200, ""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


TOKEN = "not-for-eyes"  # noqa: S105


def gitlab(server):
    """The variables of a GitLab job of a merge request whose comments ``server`` keeps, with the token."""
    api = f"http://127.0.0.1:{server.server_port}/api/v4"
    return {"PLUMB_COMMENT_TOKEN": TOKEN, "CI_API_V4_URL": api, "CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "12"}


def github(server):
    """The same of a GitHub job."""
    api = f"http://127.0.0.1:{server.server_port}"
    return {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": api, "GITHUB_REPOSITORY": "us/suite", "PLUMB_CI_REQUEST": "12"}
