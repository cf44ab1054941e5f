"""Add to the partitions of a site the keys that the inventory has and site.yaml lacks; those that are there stay.

Runs in the checkout's Python: keys.py SITE PARTITIONS [--dry-run]; PARTITIONS is a JSON list of mappings with a name.
"""

from __future__ import annotations

import io
import json
import sys
from typing import Any

from ruamel.yaml import YAML

from plumbline import files
from plumbline.site import site, write

#: what plumb site init has no option for
KEYS = ("launcher", "srun_mpi", "environment", "hosts", "max_pending_s")


def main(name: str, partitions: list[dict[str, Any]], dry_run: bool) -> int:
    """Write the file if something is missing in it; 0."""
    file = site.folder(name) / site.FILE
    if dry_run and not file.exists():  # plumb site init has only said that it would write it
        print(f"site {name}: unchanged")
        return 0
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 120
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(file.read_text(encoding="utf-8"))
    known = {part["name"] for part in document["partitions"]}
    wanted = [{"name": part["name"], **{key: part[key] for key in KEYS if part.get(key)}} for part in partitions]
    added = write.merge(document, {"partitions": [part for part in wanted if part["name"] in known]})
    if not added:
        print(f"site {name}: unchanged")
        return 0
    stream = io.StringIO()
    yaml.dump(document, stream)
    site.check(YAML(typ="safe", pure=True).load(stream.getvalue()), str(file))
    print(f"site {name}: {', '.join(added)} {'would be added' if dry_run else 'added'}")
    if not dry_run:
        files.replace(file, stream.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2]), "--dry-run" in sys.argv[3:]))
