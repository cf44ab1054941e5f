"""The pages of the golden commands, in words: how they differ from those of another commit.

``python tests/golden/pages.py HEAD`` prints the differences of this checkout to the last commit.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: the golden commands keep each page that they digest in this folder
KEEP = "PLUMB_GOLDEN_PAGES"


def pages_of(checkout: Path, folder: Path) -> None:
    """Run the golden commands that write pages, and keep the pages in ``folder``."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "report or publish or compare or gate"]
    done = subprocess.run(
        [sys.executable, *words, "tests/golden/test_commands.py"], cwd=checkout, capture_output=True, text=True,
        env={**os.environ, KEEP: str(folder), "PYTHONPATH": str(checkout), "PLUMB_TOOLS": str(ROOT / "build/tools")},
        check=False,
    )  # fmt: skip
    if not folder.is_dir():
        sys.exit(f"{checkout}: no page was made:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Print the differences."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as place:
        old, folders = Path(place) / "checkout", [Path(place) / "old", Path(place) / "new"]
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", old, sys.argv[1]], check=True)
        try:
            for checkout, folder in zip((old, ROOT), folders, strict=True):
                pages_of(checkout, folder)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", old], check=True)
        subprocess.run([sys.executable, ROOT / "tests/support/page_words.py", *folders], check=True)


if __name__ == "__main__":
    main()
