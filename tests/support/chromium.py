"""Pages in a headless Chromium: what they log, fail at or ask for beyond their own file fails the test.

Needs Debian's ``chromium`` (or another one named by ``PLUMB_CHROMIUM``).
"""

import contextlib
import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

CHROMIUM = os.environ.get("PLUMB_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
needed = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
#: the series of a picture, as the chart library holds them
SERIES = "echarts.getInstanceByDom(element).getOption().series"


@pytest.fixture(scope="module")
def browser():
    # containers allow neither root nor user namespaces a sandbox, and small shared memory; the pages are our own
    options = ["--no-sandbox", "--disable-dev-shm-usage"]
    expect.set_options(timeout=60_000)  # beside other tests a page may take many times as long
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Opens a file in a tab of this test alone: see :func:`visits`."""
    with visits(browser) as open_:
        yield open_


@contextlib.contextmanager
def visits(browser):
    """Gives what opens a file; what a page logs, fails at or asks for beyond that file is an error in the end.

    ``root`` is a folder whose files may be asked for too. To load a report takes more than most tests of it: those that
    only look share a tab.
    """
    noise, asked, opened, contexts = [], [], [], []

    def beyond(url, root):
        if root is None or not url.startswith(f"file://{root}/"):
            asked.append(url)

    def open_(file, width=1280, fragment="", root=None, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: noise.append(message.text))
        tab.on("pageerror", lambda error: noise.append(str(error)))
        tab.on("request", lambda request: beyond(request.url, root))
        opened.extend([] if root else [f"file://{file}"])
        tab.goto(f"file://{file}{fragment}")
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert noise == []
    assert asked == opened


def sideways(tab):
    """What scrolls sideways, or ends beyond the edge, once all is unfolded; the bar of sections has no values."""
    while tab.locator("main details:not([open])").count():
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        tab.wait_for_timeout(20)  # what unfolds is made by an event
    draw_all(tab)
    return tab.evaluate("""() => {
        const seen = [...document.querySelectorAll('header *, main *, dialog *')].filter(
            (one) => one.clientWidth > 1 && !one.closest('.hidden-text, figure .drawing'));
        const wide = (one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible';
        const beyond = (one) => one.getBoundingClientRect().right > innerWidth + 1;
        return seen.filter((one) => wide(one) || beyond(one)).map((one) => one.outerHTML.slice(0, 120));
    }""")


def fits(visit, file, root=None):
    """Assert that a phone shows all values without scrolling sideways, in the colours that its system asks for."""
    assert sideways(visit(file, width=420, root=root)) == []
    for scheme in ("light", "dark"):
        tab = visit(file, width=360, root=root, color_scheme=scheme)
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
        assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def draw_all(tab):
    """Every picture, also those far below."""
    tab.evaluate("document.querySelectorAll('.drawing').forEach((element) => element.startDrawing())")
    expect(tab.locator(".drawing:not(:has(canvas))")).to_have_count(0)


def stopped(browser, file, kind):
    """What the policy of a page stops, and what broken code left: a script, an element of a ``kind``, a request."""
    tab = browser.new_page()
    tab.goto(f"file://{file}")
    seen = tab.evaluate(
        """async (kind) => {
        const seen = [];
        document.addEventListener('securitypolicyviolation', (event) => seen.push(event.effectiveDirective));
        const script = document.createElement('script');
        script.textContent = 'window.broken = 3';
        const other = document.createElement(kind);
        other.src = 'http://127.0.0.1:9/x';
        document.body.append(script, other);
        await fetch('http://127.0.0.1:9/').catch(() => null);
        await new Promise((done) => setTimeout(done, 100));
        return [seen.sort(), window.broken ?? null];
    }""",
        kind,
    )
    tab.close()
    return seen
