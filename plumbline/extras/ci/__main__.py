"""``python -m plumbline.extras.ci STEP``: the steps of job.sh, for jobs that installed this package."""

import os
import sys
from pathlib import Path

os.execvp("bash", ["bash", str(Path(__file__).with_name("job.sh")), *sys.argv[1:]])  # noqa: S606 - no shell reads it
