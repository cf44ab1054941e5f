"""What ``spack-env/bootstrap`` runs."""

from __future__ import annotations

import sys

from plumbline.errors import PlumbError
from plumbline.stacks.spack import bootstrap, settings


def main() -> int:
    """Bring the pinned Spack; the exit status is returned."""
    try:
        base = bootstrap.prepare()
    except PlumbError as error:
        print(f"plumb: {error}", file=sys.stderr)
        return 2
    print(f"spack {settings.versions()['spack']['tag']} in {base.spack}, packages in {base.packages}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
