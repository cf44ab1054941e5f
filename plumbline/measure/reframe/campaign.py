"""A campaign: ReFrame over all tests of a profile, or of an application, then one table of the results."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from plumbline import schedulers, site
from plumbline.base import files, paths, surroundings, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Site
from plumbline.host import proc
from plumbline.launch import process, signals
from plumbline.measure import jobs
from plumbline.measure.application import build, model
from plumbline.measure.application.source import Source
from plumbline.measure.reframe import cases
from plumbline.measure.reframe.cases import Case
from plumbline.records import naming, outcome, query
from plumbline.records.model import Row
from plumbline.show import show, summary
from plumbline.site.nodes import choice
from plumbline.stacks import abi
from plumbline.stacks import manifest as manifests

#: exit status of a shell command that Ctrl-C ended
INTERRUPTED = 130
#: how many campaigns keep the stage folders of their failed cases
STAGES_KEPT = 5
#: characters of a reason in the summary; the whole one is in the record and in the report
REASON_LENGTH = 240
#: failed variants whose last output is printed
OUTPUTS = 3


def run(
    profile: str,
    test: str | None = None,
    options: Sequence[str] = (),
    nodes: Sequence[str] = (),
    turn: str | None = None,
) -> int:
    """Run the tests tagged with ``profile``, with ReFrame's own ``options``, and print the summary.

    With ``test`` it is those whose names begin with what this regular expression matches.

    The jobs run on ``nodes``, or on the node whose ``turn`` it is. Returns the exit status: 0 when every variant that
    the machine can hold ended verified, 1 when one did not or there was none, 130 if interrupted.
    """
    chosen = [*(named(test) if test else []), "-t", profile, "-S", f"profile={profile}", *options]
    return measure(Tests(cases.files(test), profile, chosen), nodes, turn)


@dataclass(frozen=True)
class Tests:
    """The tests of a campaign: those of ``files``, selected by ``options`` of ReFrame, under a ``profile``'s name.

    ``variables`` are for ReFrame on this host alone: a job has the files of its stage folder.
    """

    files: Sequence[Path]
    profile: str
    options: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


def measure(tests: Tests, nodes: Sequence[str] = (), turn: str | None = None) -> int:
    """Run ``tests``, on ``nodes`` if they are named, and print the summary; the status is that of :func:`run`."""
    with files.reserved(paths.reframe() / "lock", "another campaign runs in this checkout", "wait for its end"):
        campaign = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
        here = site.claiming(site.load_all())
        _refuse_blank(here)
        environment = environment_of_reframe({**_nodes_chosen(here, nodes, turn), **tests.variables})
        environment["RFM_STAGE_DIR"] = str(_make_stage(campaign))
        command = [paths.program("reframe"), *cases.words(tests.files), "-r", "--nocolor", "-S", f"campaign={campaign}"]
        # where there is one host, one case after the other: ReFrame would end a case only after the next has run
        if all(schedulers.named(part.scheduler).is_one_host for part in (here.partitions if here else [])):
            command.append("--exec-policy=serial")
        command += [*_nodes_now(here, tests.options), *tests.options]
        print(f"campaign {campaign}: {' '.join(command)}", flush=True)
        # The end of a job or of a terminal is an interrupt too; a process in a shell's background ignores SIGINT.
        for number in signals.handled():
            signal.signal(number, signal.default_int_handler)
        begin = time.monotonic()
        code, ended = _follow(command, environment)
        print()
        return _report(campaign, tests.profile, code, ended, time.monotonic() - begin)


def named(test: str) -> list[str]:
    """ReFrame's options for the tests whose names begin with what the regular expression ``test`` matches."""
    return ["-n", f"^(?:{test})"]


def _refuse_blank(here: Site | None) -> None:
    """Raise :class:`PlumbError` for a build folder whose name ReFrame, which starts job scripts itself, would split."""
    folder, parts = str(paths.build()), here.partitions if here else []
    if re.search(r"[\s'\"\\]", folder) and any(not schedulers.named(part.scheduler).has_jobs for part in parts):
        fault = "the path of the build folder has a blank, a quote or a backslash, and ReFrame starts no script there"
        raise PlumbError(fault, folder, "name another folder: --build, or PLUMB_BUILD")


def _log() -> Path:
    """ReFrame's whole output."""
    return paths.reframe() / "campaign.out"


def _make_stage(campaign: str) -> Path:
    """A stage folder that no other campaign's jobs can be in; those of old campaigns are removed."""
    stage = paths.reframe() / "stage" / campaign
    with files.writing("the stage folder", stage.parent):
        for mark in sorted(stage.parent.glob(f"*/{files.MARK}"))[: 1 - STAGES_KEPT]:
            shutil.rmtree(mark.parent)
        files.make_anew(stage)
    return stage


def _nodes_chosen(here: Site | None, nodes: Sequence[str], turn: str | None) -> dict[str, str]:
    """Pin the jobs as asked."""
    if not nodes and turn is None:
        return {}
    if here is None:
        raise PlumbError(
            "no site claims this host, so it has no nodes", str(paths.sites()), "plumb site init makes one"
        )
    chosen = choice.turn(here, turn) if turn is not None else choice.explicit(here, list(nodes))
    for name, node in chosen.items():
        print(f"partition {name}: jobs run on {node}", flush=True)
    return {choice.PIN_JOBS: ",".join(f"{name}={node}" for name, node in chosen.items())}


def _nodes_now(here: Site | None, extra: Sequence[str]) -> list[str]:
    """Print which nodes of the site cannot be used; returns the option that keeps jobs from waiting for them.

    Nothing where ``extra``, ReFrame's other options, has that option, or where no site can be measured here.
    """
    if here is None or here.archived or any(word.startswith(f"{choice.MAX_NODES}=") for word in extra):
        return []
    counts, lines = choice.survey(here)
    for line in lines:
        print(line, flush=True)
    lowered = ",".join(f"{name}={count}" for name, count in counts.items())
    return ["-S", f"{choice.MAX_NODES}={lowered}"] if counts else []


def environment_of_reframe(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's variables, those that ``activate`` sets for ReFrame, the folders in use, and ``variables``.

    Raises :class:`PlumbError` for a variable that would be set otherwise without a word.
    """
    local, ours = paths.sites() / "settings.py", paths.suite() / "site-configs" / "settings.py"
    activated = {"RFM_CONFIG_FILES": str(ours), "RFM_PREFIX": str(paths.home() / "build" / "reframe")}
    reframe_settings = {"RFM_CONFIG_FILES": str(local if local.exists() else ours), "RFM_PREFIX": str(paths.reframe())}
    for name, value in os.environ.items():
        known = surroundings.row(name)
        if known and known.programs == "refused" and value not in (activated.get(name), reframe_settings.get(name)):
            fault = f"{name} is set, and ReFrame would not get it: its tests, settings and folders are Plumbline's"
            raise PlumbError(fault, f"{name}={value}", f"unset {name}, or use reframe itself after . ./activate")
    return {**os.environ, **paths.variables(), **reframe_settings, **variables}


def _follow(command: list[str], environment: dict[str, str]) -> tuple[int, list[Case]]:
    """Run ReFrame, print a line per test case with the time left, and return its exit status and the cases."""
    ended: list[Case] = []
    begin = time.monotonic()
    with (
        _log().open("w", encoding="utf-8") as stream,
        subprocess.Popen(
            command, env=environment, cwd=paths.suite(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, preexec_fn=process.die_with_parent,
        ) as child,
        terminal.bar(),
    ):  # fmt: skip
        try:
            for line in child.stdout or ():
                stream.write(line)
                if progress := cases.ended(line):
                    case, number, total = progress
                    ended.append(case)
                    if case.state != "SKIP":
                        seconds = (time.monotonic() - begin) * _left(ended, total)
                        left = f"about {units.human_seconds(seconds)} left"
                        print(f"{number:>4}/{total} {case.state:<4} {case.label}  ({left})", flush=True)
                        terminal.progress(number, total, left)
            return child.wait(), ended
        except KeyboardInterrupt:
            print("\ninterrupted: ending the running launches", flush=True)
            child.send_signal(signal.SIGINT)
            _end_jobs(child.pid, environment)
            try:
                child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
            _end_jobs(child.pid, environment)
            return INTERRUPTED, ended


def _end_jobs(reframe: int, environment: Mapping[str, str]) -> None:
    """End all jobs at once. ReFrame ends one, waits for its end while the next begins, and loses those by ssh."""
    jobs.cancel_noted(Path(environment["RFM_STAGE_DIR"]), print)
    for pid in process.descendants(reframe):
        with contextlib.suppress(OSError):  # it has ended
            if proc.stat(proc.PROC / str(pid)).name in schedulers.REMOTE.programs:
                os.kill(pid, signal.SIGTERM)


def _left(ended: Sequence[Case], total: int) -> float:
    """The rest of ``total`` cases, as a multiple of the time taken so far, after a case that ran.

    Skips take no time. Where jobs run beside one another they all come first, else they are mixed with the others.

    >>> skipped, done = Case("SKIP", ""), Case("OK", "")
    >>> _left([skipped, skipped, done], 5), _left([done, skipped, done], 6)
    (2.0, 1.0)
    """
    mixed = ended[next(place for place, case in enumerate(ended) if case.state != "SKIP") :]
    return (total - len(ended)) / len(mixed)


def _report(campaign: str, profile: str, code: int, ended: list[Case], seconds: float) -> int:
    """Print the results, why the other cases have no figures, the closing line and the next step."""
    output = _log().read_text(encoding="utf-8", errors="replace")
    ended = cases.explained(ended, output)
    mine, damages = query.records(query.Selection(campaign=campaign))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    if mine:
        print("\n".join([summary.lines(mine), *summary.legend(mine)]))
    skips = cases.skip_reasons(ended)
    failed = [case for case in ended if case.failed]
    if mine and (skips or failed):
        print()
    for reason, count in skips.most_common():
        print(f"skipped {count:>3} x {reason}")
    for case in failed:
        print(f"failed {case.describe()}: {naming.shorten(case.reason or 'ReFrame gives no reason', REASON_LENGTH)}")
    invalid = [row for row in mine if not row.is_valid]
    for record in query.of_rows(invalid[:OUTPUTS])[0]:  # the last lines of its launches before they failed
        if lines := show.output(record):
            print(f"\n{record.variant.name} on {record.stack.name} ({record.id}), {lines}")
    for name in sorted({row.site for row in mine}):
        outcome.write(name, campaign, profile, ((case.state, case.label, case.reason) for case in ended))
    if not ended and code == INTERRUPTED:
        return code
    if not ended:
        why, cure = cases.last_words(output), cases.WHOLE
        if why == cases.NONE_SELECTED:
            listed = "reframe -c reframe-tests -l lists the tests, plumb stack list the stacks"
            cure = "--profile full selects among all tests" if profile == "quick" else listed
        raise PlumbError(f"no test ran: {why}", str(_log()), cure)
    took = units.human_seconds(seconds)
    print(
        f"\n{summary.closing(mine)}; {sum(skips.values())} skipped, {len(failed)} failed, in {took}"
        f"\nplumb show ID shows all of a line, plumb report makes a page of them; ReFrame's output: {_log()}"
    )
    measured = bool(mine or any(case.state == "OK" for case in ended))  # a check of the suite itself leaves no record
    if step := _next(mine, failed):
        print(f"next: {step}")
    if why := _why(failed, len(invalid), measured, skips):
        print(why, file=sys.stderr)
    return code or (1 if why else 0)


def _why(failed: Sequence[Case], invalid: int, measured: bool, skips: Mapping[str, int]) -> str:
    """Why the campaign's exit status is 1, in a line; empty where all is well."""
    reasons = [f"{units.counted(len(failed), 'case')} failed"] if failed else []
    reasons += [f"{units.counted(invalid, 'variant')} not valid"] if invalid else []
    if not measured and not failed:
        often = max(skips, key=lambda reason: skips[reason], default="")
        all_skipped = f": all {sum(skips.values())} were skipped, {skips[often]} x {often}" if skips else ""
        reasons.append(f"no variant was measured{all_skipped}")
    return "; ".join(reasons)


def _next(mine: Sequence[Row], failed: Sequence[Case]) -> str | None:
    """The most useful step after a campaign; None where there is nothing to do."""
    invalid = next((row for row in mine if not row.is_valid), None)
    if invalid:
        return f"plumb show {invalid.id} shows what went wrong in {invalid.variant.name} on {invalid.stack.name}"
    if failed:
        stage = failed[0].stage
        if stage and any(Path(stage).glob("*.err")):
            return f"the first failed job's own words: tail {stage}/*.err"
        return (
            f"all that ReFrame says of it, which has no job with words of its own: grep -A 20 'FAILURE INFO' {_log()}"
        )
    if any(row.verdict == "unreferenced" for row in mine):
        return "plumb calibrate makes expected values of these figures, once they were measured in 3 sessions"
    return None


def prepared(file: Path, state: Source, stacks: Sequence[str], folder: Path, say: Callable[[str], None]) -> Tests:
    """The tests of the application of ``file`` in a ``state`` of its code, built with each of ``stacks``.

    Their list for ReFrame is written to ``folder``.
    """
    builds = [build.build(file, state, manifests.load(name), say) for name in stacks]
    runnable = build.Runnable.of(builds)
    listing = folder / f"{state.key}.json"
    files.replace(listing, msgspec.json.encode(runnable).decode())
    return Tests([Path(__file__).with_name("applications.py")], runnable.code.name, [], {build.VARIABLE: str(listing)})


def offered_stacks(file: Path | None) -> list[str]:
    """The stacks that this host's site offers and that the application of ``file``, if there is one, can use.

    Raises :class:`PlumbError` if there is none.
    """
    here = site.claiming(site.load_all())
    if here is None:
        raise PlumbError("no site is configured for this host", str(paths.sites()), f"{paths.setup()} makes one")
    offered = dict.fromkeys(name for part in here.partitions for name in part.stacks)
    if not offered:
        raise PlumbError("the site offers no stack", str(paths.sites()), "plumb stack install makes some")
    if file is None or model.load(file).mpi_abi == "stack":
        return list(offered)
    stacks = [name for name in offered if abi.library(manifests.load(name))]
    if not stacks:
        fault = f"no stack of the site has the standard MPI ABI ({abi.LIBRARY})"
        raise PlumbError(fault, ", ".join(offered), f"{paths.setup()}, or leave mpi_abi out of {model.FILE}")
    return stacks


def first_stack(file: Path | None, say: Callable[[str], None]) -> str:
    """The first of :func:`offered_stacks`, which is said."""
    name = offered_stacks(file)[0]
    say(f"stack {name}, the first that the site offers (--stack NAME takes another)")
    return name
