"""ReFrame tests. ReFrame loads this file before any test beside it."""

import importlib.util
import sys
from pathlib import Path

# A ReFrame that is not the one of this checkout's .venv would drop every test at import and report an empty success.
# With the package in reach they load, and end as skipped with the reason.
if importlib.util.find_spec("plumbline") is None:
    sys.path.append(str(Path(__file__).resolve().parent.parent))
