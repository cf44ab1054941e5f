"""The site of the documentation in a browser: readable on a desk and on a phone, searchable, nothing from elsewhere."""

import functools
import http.server
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from chromium import needed
from playwright.sync_api import expect

from plumbline.base import paths

pytestmark = needed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = str(Path(sys.executable).parent / "mkdocs")
    subprocess.run([mkdocs, "build", "--quiet", "--site-dir", folder], cwd=paths.root(), timeout=120, check=True)
    return folder


@pytest.fixture(scope="module")
def address(folder):
    """A web server with the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tab(browser, address, request):
    """A page of its own; what it logs, and what it asks others for, fails the test in the end."""
    width, scheme = getattr(request, "param", (1280, "light"))
    noise = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(address) else noise.append(asked.url))
    yield page
    context.close()
    assert noise == []


@pytest.mark.parametrize("tab", [(1280, "light"), (390, "dark")], indirect=True, ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["index", "gate", "api", "kernels/node"])
def test_a_page_fits(tab, address, name):
    tab.goto(f"{address}/{name}.html")
    expect(tab.locator("h1")).to_be_visible()
    assert tab.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert tab.locator("article p:has-text('| ---')").count() == 0  # a table that is none


def test_the_keyboard_finds_a_page(tab, address):
    tab.goto(address)
    tab.keyboard.press("/")
    tab.keyboard.type("false sharing")
    first = tab.locator(".md-search-result__item a").first
    expect(first).to_be_visible()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile("kernels|seeds"))


def test_it_is_searched_from_a_disk(browser, folder):
    """Without a server and without a network."""
    page = browser.new_page()
    asked = []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(f"file://{folder / 'gate.html'}")
    page.keyboard.press("/")
    page.keyboard.type("false sharing")
    expect(page.locator(".md-search-result__item a").first).to_be_visible()
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_types_of_the_package_are_there(tab, address):
    tab.goto(f"{address}/api.html")
    for name in ("records", "find", "Record", "Figure"):
        expect(tab.get_by_role("heading", name=name, exact=False).first).to_be_visible()
