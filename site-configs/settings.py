"""ReFrame configuration: every folder beside this file that holds a site.yaml is a system.

Partitions come from site.yaml, environments from the manifests of the installed stacks; nothing is written by hand.
"""

import importlib.util
import sys
from pathlib import Path

# a ReFrame of another installation does not know where the package is
if importlib.util.find_spec("plumbline") is None:
    sys.path += [str(folder) for folder in Path(__file__).resolve().parents if (folder / "plumbline").is_dir()]

from plumbline.reframe import configuration

site_configuration = configuration()
