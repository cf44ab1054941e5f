"""How fast ``plumb publish`` is, and how large its pages are: 1,000 campaigns of 72 variants, then one campaign more.

Writes the campaigns (:mod:`generate`) to a temporary folder and publishes them, each time in a process of its own: the
newest, all, no change, one campaign more. The status is 1 if all take longer than ``--seconds`` or the pages
are larger than ``--megabytes``.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(Path(__file__).parent)]

import generate  # noqa: E402
from bench_index import run  # noqa: E402

from plumbline.base.table import table  # noqa: E402


def main() -> int:
    """Generate, publish, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--variants", type=int, default=72)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--megabytes", type=float, default=200.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plumb-scale-") as folder:
        results, pages = Path(folder) / "results", Path(folder) / "pages"
        generate.write_campaigns(results, args.campaigns, args.variants)
        print(f"{args.campaigns} campaigns of {args.variants}; load {os.getloadavg()[0]:.1f}", flush=True)
        run(results, "list")  # makes the index
        rows = []
        for label, *words in (("the newest 30",), ("all", "--all"), ("no change",), ("one campaign more",)):
            if label == "one campaign more":
                generate.write_campaigns(results, 1, args.variants, seed=2)
            seconds, cpu, peak = run(results, "publish", *words, str(pages))
            size = sum(file.stat().st_size for file in pages.rglob("*") if file.is_file()) / 1e6
            rows.append((label, f"{seconds:.0f}", f"{cpu:.0f}", f"{peak:.0f}", f"{size:.1f}"))
    columns = ("pages of", "s", "CPU s", "MiB", "MB of pages")
    print(table(columns, rows, right=columns[1:]))
    return int(float(rows[1][1]) > args.seconds or float(rows[-1][-1]) > args.megabytes)


if __name__ == "__main__":
    sys.exit(main())
