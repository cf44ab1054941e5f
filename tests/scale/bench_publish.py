"""How fast ``plumb publish`` is, and how large its pages are: 1,000 campaigns of 72 variants, then one campaign more.

Writes the campaigns (:mod:`generate`) to a temporary folder and publishes them three times, each in a process of its
own: all pages, no change, one campaign more. The status is 1 if the first takes longer than ``--seconds`` or the pages
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
        first, cpu, peak = run(results, "publish", str(pages))
        print(f"{cpu:.0f} s of processor time, at most {peak:.0f} MiB")
        size = sum(file.stat().st_size for file in pages.rglob("*") if file.is_file()) / 1e6
        again, *_ = run(results, "publish", str(pages))
        generate.write_campaigns(results, 1, args.variants, seed=2)
        more, *_ = run(results, "publish", str(pages))
    print(f"all pages {first:.0f} s, {size:.0f} MB; no change {again:.0f} s; one campaign more {more:.0f} s")
    return 1 if first > args.seconds or size > args.megabytes else 0


if __name__ == "__main__":
    sys.exit(main())
