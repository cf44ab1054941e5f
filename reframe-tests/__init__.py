"""ReFrame tests. ReFrame loads this file before any test beside it."""

import importlib.util
import sys
from pathlib import Path

# a ReFrame of another installation does not know where the package is
if importlib.util.find_spec("plumbline") is None:
    sys.path += [str(folder) for folder in Path(__file__).resolve().parents if (folder / "plumbline").is_dir()]

from plumbline.reframe import require_stacks

require_stacks()
