"""Whether the suite is whole: every test loads, every reference file is there.

ReFrame drops a test file that does not load with a warning, and a run of no tests is a success to it. This module is
what the test ``suite_integrity`` runs; ``python -m plumbline.integrity SITE`` prints a line per fault and exits with 1
if there is one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from plumbline import paths, site

#: the list of test classes that must load, one per line
EXPECTED = "expected.txt"


def faults(tests: Path, site_name: str) -> list[str]:
    """Everything that is missing: expected tests that did not load, unexpected ones, absent reference files."""
    expected = set((tests / EXPECTED).read_text(encoding="utf-8").split())
    loaded = loaded_classes(tests)
    found = [f"test {name} was dropped: 'reframe -c {tests} -l -v' says why" for name in sorted(expected - loaded)]
    found += [f"test {name} is not in {tests / EXPECTED}: add it" for name in sorted(loaded - expected)]
    families = {name.partition("_")[0] for name in expected} - {"suite"}
    for family in sorted(families):
        file = site.folder(site_name) / "references" / f"{family}.yaml"
        if not file.is_file():
            found.append(f"reference file is missing: {file}: 'plumb site init' writes an empty one")
    return found


def loaded_classes(tests: Path) -> set[str]:
    """Names of the test classes that ReFrame loads from ``tests`` with the present settings."""
    command = [str(Path(sys.executable).parent / "reframe"), "-c", str(tests), "--describe"]
    # with a job's own variables ReFrame would write its log over the one of the run that started this
    environment = {**os.environ, "RFM_SAVE_LOG_FILES": "no", "RFM_PREFIX": str(paths.build() / "reframe-integrity")}
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    try:
        return {test["@class"] for test in json.loads(answer.stdout)}
    except ValueError:
        return set()


def main() -> int:
    """Check the suite of this checkout against site ``argv[1]``."""
    found = faults(paths.root() / "reframe-tests", sys.argv[1])
    for fault in found:
        print(f"FAULT {fault}")
    print("suite is whole" if not found else f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
