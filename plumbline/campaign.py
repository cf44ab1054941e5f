"""``plumb campaign``: ReFrame over all tests of a profile, then one table of what was found."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plumbline import files, paths, schedulers, site, units
from plumbline.errors import PlumbError
from plumbline.launch import process, signals
from plumbline.nodes import pinned, usable
from plumbline.records import outcome, query
from plumbline.views import summary

#: ``[       OK ] (12/80) stream_threads %threads=2 /1a2b3c4d @local:default+mpich``
_DONE = re.compile(r"\[\s*(OK|FAIL|SKIP|ABORT)\s*\]\s*\(\s*(\d+)/(\d+)\)\s*(.*)")
#: ReFrame's closing report of a case that failed: its name, partition, environment and the reason
_FAILURE = re.compile(
    r"^FAILURE INFO for (.*) \(run: "
    r".*?^  \* System partition: (\S+)$.*?^  \* Environment: (\S+)$.*?^  \* Reason: (.*?)$",
    re.MULTILINE | re.DOTALL,
)
#: exit status of a shell command that Ctrl-C ended
INTERRUPTED = 130
#: how many campaigns keep the stage folders of their failed cases
STAGES_KEPT = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``plumb campaign``."""
    parser.add_argument("--profile", choices=("quick", "full"), default="quick")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--node", action="append", default=[], metavar="[PARTITION=]NODE", help="jobs run on this node, repeated"
    )
    where.add_argument("--turn", metavar="I/K", help="jobs run on the I-th of the first K nodes that can be used")
    parser.add_argument("reframe", nargs="*", metavar="-- REFRAME OPTION", help="passed on to ReFrame")


def run(args: argparse.Namespace) -> int:
    """Run the tests tagged with the profile, with ReFrame's own options as given, and print the summary.

    Returns 0 when every variant that the machine can hold ended verified, 1 when one did not or there was none, 130 if
    interrupted.
    """
    with files.reserved(_folder() / "lock", "another campaign runs in this checkout", "wait for its end"):
        return _campaign(args)


def _campaign(args: argparse.Namespace) -> int:
    campaign = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
    here = site.claiming(site.load_all())
    environment = {**os.environ, **environment_of_reframe(), **_nodes_chosen(here, args.node, args.turn)}
    environment["RFM_STAGE_DIR"] = str(_make_stage(campaign))
    command = [str(Path(sys.executable).parent / "reframe"), "-c", str(paths.root() / "reframe-tests"), "-r"]
    command += ["--nocolor", "-t", args.profile, "-S", f"campaign={campaign}", "-S", f"profile={args.profile}"]
    command += [*_policy(here), *_nodes_now(here, args.reframe), *args.reframe]
    print(f"campaign {campaign}: {' '.join(command)}", flush=True)
    # A batch system's or a terminal's end is an interrupt too; what a shell started in the background ignores SIGINT.
    for number in signals.handled():
        signal.signal(number, signal.default_int_handler)
    begin = time.monotonic()
    code, ended = _follow(command, environment)
    print()
    return _report(campaign, args.profile, code, ended, time.monotonic() - begin)


def _folder() -> Path:
    """Where ReFrame works, and its output is kept."""
    return paths.build() / "reframe"


def _make_stage(campaign: str) -> Path:
    """A stage folder that no other campaign's jobs can be in; those of old campaigns are removed."""
    place = _folder() / "stage"
    with files.writing("the stage folder", place):
        made = sorted(mark.parent for mark in place.glob(f"*/{files.MARK}"))
        for old in made[: 1 - STAGES_KEPT]:
            shutil.rmtree(old)
        files.make_anew(place / campaign)
    return place / campaign


def _nodes_chosen(here: dict[str, Any] | None, nodes: Sequence[str], turn: str | None) -> dict[str, str]:
    """Pin the jobs as asked."""
    if not nodes and turn is None:
        return {}
    if here is None:
        raise PlumbError(
            "no site claims this host, so it has no nodes", str(paths.sites()), "plumb site init makes one"
        )
    chosen = pinned.turn(here, turn) if turn is not None else pinned.explicit(here, list(nodes))
    for name, node in chosen.items():
        print(f"partition {name}: jobs run on {node}", flush=True)
    return {pinned.VARIABLE: ",".join(f"{name}={node}" for name, node in chosen.items())}


def _policy(here: dict[str, Any] | None) -> list[str]:
    """One case after the other where there is one host: ReFrame would end a case only after the next has run."""
    schedulers_here = [schedulers.named(part["scheduler"]) for part in here["partitions"]] if here else []
    return ["--exec-policy=serial"] if all(scheduler.is_one_host for scheduler in schedulers_here) else []


def _nodes_now(here: dict[str, Any] | None, extra: Sequence[str]) -> list[str]:
    """Say which nodes of the site are out of work; returns the option that keeps jobs from waiting for them.

    None where ``extra``, ReFrame's other options, has it already.
    """
    if any(word.startswith(f"{usable.VARIABLE}=") for word in extra):
        return []
    if here is None or here.get("archived", False):
        return []
    counts, lines = usable.survey(here)
    for line in lines:
        print(line, flush=True)
    lowered = ",".join(f"{name}={count}" for name, count in counts.items())
    return ["-S", f"{usable.VARIABLE}={lowered}"] if counts else []


def environment_of_reframe() -> dict[str, str]:
    """What ``activate`` sets for ReFrame, and the folders in use."""
    return {
        **paths.variables(),
        "RFM_CONFIG_FILES": str(paths.sites() / "settings.py"),
        "RFM_PREFIX": str(_folder()),
    }


def _follow(command: list[str], environment: dict[str, str]) -> tuple[int, list[tuple[str, str]]]:
    """Run ReFrame, print a line per test case with the time left, and return its exit status and the cases."""
    ended: list[tuple[str, str]] = []
    log = _folder() / "campaign.out"
    begin = time.monotonic()
    with (
        log.open("w", encoding="utf-8") as stream,
        subprocess.Popen(
            command,
            env=environment,
            cwd=paths.root(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=process.die_with_parent,
        ) as child,
    ):
        try:
            for line in child.stdout or ():
                stream.write(line)
                found = _DONE.search(line)
                if found:
                    state, number, total, rest = found[1], int(found[2]), int(found[3]), found[4]
                    ended.append((state, rest))
                    if state != "SKIP":
                        left = (time.monotonic() - begin) * _left(ended, total)
                        print(
                            f"{number:>4}/{total} {state:<4} {rest}  (about {units.human_seconds(left)} left)",
                            flush=True,
                        )
            return child.wait(), ended
        except KeyboardInterrupt:
            print("\ninterrupted: ending the running launches", flush=True)
            child.send_signal(signal.SIGINT)
            try:
                child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
            return INTERRUPTED, ended


def _left(ended: Sequence[tuple[str, str]], total: int) -> float:
    """What is left of ``total`` cases, as a multiple of the time taken so far, after a case that ran.

    Skips take no time. Where jobs run beside one another they all come first, else they are mixed with the others.

    >>> _left([("SKIP", ""), ("SKIP", ""), ("OK", "")], 5), _left([("OK", ""), ("SKIP", ""), ("OK", "")], 6)
    (2.0, 1.0)
    """
    states = [state for state, _ in ended]
    mixed = states[next(place for place, state in enumerate(states) if state != "SKIP") :]
    return (total - len(states)) / len(mixed)


def _report(campaign: str, profile: str, code: int, ended: list[tuple[str, str]], seconds: float) -> int:
    mine, damages = query.records(query.Selection(campaign=campaign))
    for name in sorted({row.site for row in mine}):
        outcome.write(name, campaign, profile, ended)
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    if mine:
        print("\n".join([summary.lines(mine), *summary.legend(mine), ""]))
    states = Counter(state for state, _ in ended)
    skips = _skip_reasons(ended)
    for reason, count in skips.most_common():
        print(f"skipped {count:>3} x {reason}")
    log = _folder() / "campaign.out"
    for case in _FAILURE.finditer(log.read_text(encoding="utf-8", errors="replace")):
        print("failed {} @{}+{}: {}".format(*case.groups()))
    if not ended and code == INTERRUPTED:
        return code
    if not ended:
        raise PlumbError(f"no test ran: {_last_words(log)}", str(log), "ReFrame's whole output is there")
    failed = states["FAIL"] + states["ABORT"]
    print(
        f"\n{summary.closing(mine)}; {sum(skips.values())} skipped, {failed} failed, in {units.human_seconds(seconds)}"
        f"\nplumb show ID tells all about a line, plumb report makes a page of them; ReFrame's output: {log}"
    )
    measured = bool(mine or states["OK"])  # a check of the suite itself ends OK without a record
    if not measured:
        print("no variant was measured", file=sys.stderr)
    bad = failed or not measured or any(not row.is_valid for row in mine)
    return code or (1 if bad else 0)


def _skip_reasons(ended: list[tuple[str, str]]) -> Counter[str]:
    """Why cases were skipped: ReFrame prints the reason in brackets at the end of the line."""
    return Counter(rest.partition(" [")[2].rstrip("]") or "no reason given" for state, rest in ended if state == "SKIP")


def _last_words(log: Path) -> str:
    """Why ReFrame ran nothing, from its output: an error of ours that a site or a test raised, or one of its own."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    ours = [line.partition("PlumbError: ")[2] for line in lines if "PlumbError: " in line]
    theirs = [line for line in lines if "error:" in line]
    return (ours or theirs or ["none was selected"])[-1]
