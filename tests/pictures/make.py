"""Pictures of a machine with the ranks of a placement, and of the top of the newest campaign's report.

``make pictures`` writes docs/pictures/*.png, after ``make campaign`` on a machine that had nothing else to do. It needs
chromium.
"""

import html
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from plumbline.base import paths

sys.path.insert(0, str(paths.root() / "tests/support"))
from chromium import CHROMIUM, draw_all

PLUMB = str(Path(sys.executable).parent / "plumb")
PLACE = paths.root() / "docs/pictures"
#: a machine with two packages, stored
MACHINE = "tests/data/topologies/rrze-nehalem.xml"
PAGE = """<meta charset="utf-8"><pre style="display: inline-block; margin: 0; padding: 16px 24px;
background: #1e2129; color: #e2e4e9; font: 14px/1.45 monospace">{}</pre>"""


def plumb(*words: str) -> str:
    """What the command prints; its error ends the program."""
    done = subprocess.run([PLUMB, *words], cwd=paths.root(), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return done.stdout


def report(browser: Browser, folder: Path) -> None:
    """The first screen of the page of the newest campaign."""
    page = folder / "report.html"
    plumb("report", "--output", str(page))
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    tab.goto(page.as_uri())
    draw_all(tab)
    tab.screenshot(path=PLACE / "report.png", animations="disabled")


def topology(browser: Browser) -> None:
    """Eight ranks dealt over a machine."""
    words = ("topology", "--placement", "scatter", "--threads", "1", MACHINE)
    text = f"$ plumb {' '.join(words)}\n{plumb(*words)}".rstrip()
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.set_content(PAGE.format(html.escape(text)))
    tab.locator("pre").screenshot(path=PLACE / "topology.png")


def main() -> int:
    """Write both; 2 without a browser."""
    if CHROMIUM is None:
        print("plumb: chromium is not installed: apt-get install chromium", file=sys.stderr)
        return 2
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        # containers allow neither root nor user namespaces a sandbox; the pages are our own
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        topology(browser)
        report(browser, Path(folder))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
