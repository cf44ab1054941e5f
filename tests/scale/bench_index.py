"""Time and memory of commands with 1,000,000 records of 20 sites: ``make scale``.

Writes campaigns of 72 records (:mod:`generate`) to ``--results``, or a temporary folder, and runs each command in a
process of its own: first ``plumb list``, which makes the index, then again, then after one more campaign. The status is
1 if a command fails, or if the index is larger than 15 % of the records. ``--results`` stays; a folder that is
there is used, and gets one more campaign.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(Path(__file__).parent)]

import generate  # noqa: E402

from plumbline.base.table import table  # noqa: E402
from plumbline.records import index  # noqa: E402

SITES, VARIANTS = 20, 72
#: the largest index, as a fraction of the records
SHARE = 0.15
CODE = """
import os, resource, sys
from pathlib import Path
from plumbline.commands import cli
status = cli.main(sys.argv[1:])
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
peak = max(int(peak), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
print(f"{sum(os.times()[:4])} {peak / 1024}", file=sys.stderr)
sys.exit(status)
"""


def run(results: Path, *words: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor time of all its processes, and MiB of the largest one, that a command takes."""
    began = time.monotonic()
    command = [sys.executable, "-c", CODE, "--results", str(results), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    cpu, peak = done.stderr.decode().splitlines()[-1].split()
    return time.monotonic() - began, float(cpu), float(peak)


def main() -> int:
    """Generate, run, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--results", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plumb-scale-") as folder:
        results, site = args.results or Path(folder) / "results", "site00"
        if not results.exists():
            generate.write_campaigns(results, args.records // SITES // VARIANTS, VARIANTS, site=site)
            for number in range(1, SITES):
                generate.copy_site(results, site, f"site{number:02}", 100 + number)  # no seed twice
        sites = shutil.copytree(ROOT / "site-configs" / "local", Path(folder) / "sites" / site).parent
        (sites / site / "site.yaml").write_text(
            (sites / site / "site.yaml").read_text(encoding="utf-8").replace("name: local", f"name: {site}", 1)
        )
        file = results / index.NAME
        file.unlink(missing_ok=True)
        rows = []
        for label, *words in (
            ("the index", "list"),
            ("list", "list"),
            ("one more campaign", "list"),
            ("list --site", "list", "--site", site),
            ("show", "show", "last"),
            ("export", "export", "--format", "csv", "--output", f"{folder}/figures.csv"),
            ("compare", "compare", *generate.STACKS, "--site", site),
            ("history", "history", "--site", site),
            ("calibrate", "calibrate", "--site", site, "--min-sessions", "2", "--dry-run", "--sites", str(sites)),
            ("publish", "publish", "--site", site, f"{folder}/pages"),
            ("report", "report", "--site", site, "--output", f"{folder}/report.html"),
        ):
            if label == "one more campaign":
                generate.write_campaigns(results, 1, VARIANTS, seed=SITES, site="more")
                time.sleep(3)  # younger files are read again
            seconds, cpu, peak = run(results, *words)
            rows.append((label, f"{seconds:.1f}", f"{cpu:.1f}", f"{peak:.0f}"))
            print(f"  {label}: {seconds:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
        sizes = [item.stat().st_size for item in results.rglob("*.jsonl")]
        share = file.stat().st_size / sum(sizes)
    print(table(("command", "s", "CPU s", "MiB"), rows, right=("s", "CPU s", "MiB")))
    print(f"\n{len(sizes)} files of {sum(sizes) / 1e9:.2f} GB; the index is {100 * share:.1f} % of them")
    return int(share > SHARE)


if __name__ == "__main__":
    sys.exit(main())
