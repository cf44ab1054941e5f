"""A stand-in for the part of GitLab and GitHub that keeps the comments of merge requests."""

import http.server
import json
import threading

import pytest


@pytest.fixture
def host():
    """A server with the two interfaces' list, new and edit; ``status`` is what it answers with."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self):
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            server.asked.append((self.command, self.path, dict(self.headers), body))
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(json.dumps(server.comments).encode())

        do_GET = do_POST = do_PUT = do_PATCH = _answer

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.comments, server.status = [], [], 200
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
