"""A campaign: ReFrame over all tests of a profile, or of an application, then one table of the results."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import msgspec

from plumbline import schedulers, site
from plumbline.base import files, group, paths, programs, surroundings, terminal, units
from plumbline.base.errors import PlumbError
from plumbline.base.schemas.site import Site
from plumbline.host import proc
from plumbline.launch import process
from plumbline.measure import jobs
from plumbline.measure.application import build, model
from plumbline.measure.application.model import Source
from plumbline.measure.reframe import cases, settings
from plumbline.measure.reframe.cases import Case
from plumbline.records import naming, outcome, query
from plumbline.records.model import Row
from plumbline.show import brief, summary
from plumbline.show import record as show
from plumbline.show.report import answer
from plumbline.show.report.findings import AGAIN, Campaign
from plumbline.site.nodes import choice
from plumbline.stacks import abi
from plumbline.stacks import manifest as manifests

#: how ReFrame's options begin that choose among the tests of a profile
SELECTING = ("-n", "-x", "-t", "-T", "-p", "-E", "--name", "--ex", "--tag", "--prgenv", "--filter", "--failed")
#: exit status of a shell command that Ctrl-C ended
INTERRUPTED = 130
#: how many campaigns keep the stage folders of their failed cases
STAGES_KEPT = 5
#: characters of a reason in the summary; the whole one is in the record and in the report
REASON_LENGTH = 240
#: failed variants whose last output is printed
OUTPUTS = 3
#: test -> its cases of the quick campaign that run on two cores with three stacks, of so many in all, and the seconds
#: that one took there (median of two campaigns on two idle cores of a virtual machine, of 326 and 329 s)
QUICK = {
    "dgemm_node": (1, 4.4), "barrier_pair": (1, 2.4), "sharing_pair": (1, 3.3), "suite_integrity": (1, 4.8),
    "osu_pair": (9, 4.5), "osu_collective": (9, 1.9), "osu_barrier": (3, 1.3), "stream_threads": (4, 11.8),
    "stream_numa": (1, 16.8), "stream_ranks": (2, 14.4), "daxpy_touch": (1, 9.5), "membw_triad": (1, 15.0),
    "imb_pair": (4, 2.6), "imb_window": (2, 3.4), "imb_collective": (6, 2.4), "imb_barrier": (2, 1.4),
    "pairs_cores": (5, 1.6), "deadlock_fixed": (3, 1.4), "pi_sum": (5, 1.5), "heat1d_steps": (3, 1.4),
    "pingpong_threads": (3, 3.4), "overlap_fraction": (3, 4.9), "jacobi_modes": (3, 16.9),
}  # fmt: skip
QUICK_CASES = 204


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
    selected = test or any(word.startswith(SELECTING) for word in options)
    return measure(Tests(cases.files(test), profile, chosen, part=outcome.CHOSEN if selected else None), nodes, turn)


@dataclass(frozen=True)
class Tests:
    """The tests of a campaign: those of ``files``, selected by ``options`` of ReFrame, under a ``profile``'s name.

    ``variables`` are for ReFrame on this host alone: a job has the files of its stage folder. ``part`` says why these
    are not all tests of the profile, ``experiment`` which experiment they are for, if they are for one. They are run in
    ``rounds``, one after the other, and usually take ``expected_s`` seconds in all, if that is known. ``unbuilt``: why
    the application was not built with a stack.
    """

    files: Sequence[Path]
    profile: str
    options: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    part: str | None = None
    experiment: str | None = None
    rounds: int = 1
    expected_s: float = 0.0
    unbuilt: Sequence[str] = ()


def measure(tests: Tests, nodes: Sequence[str] = (), turn: str | None = None) -> int:
    """Run ``tests``, on ``nodes`` if they are named, and print the summary; the status is that of :func:`run`."""
    with files.reserved(paths.reframe() / "lock", "another campaign runs in this checkout", "wait for its end"):
        campaign = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
        here = site.claiming(site.load_all())
        _refuse_blank(here)
        theirs, options = _configurations(tests.options)
        environment = environment_of_reframe({**_nodes_chosen(here, nodes, turn), **tests.variables}, theirs)
        environment["RFM_STAGE_DIR"] = str(_make_stage(campaign))
        # where there is one host, one case after the other: ReFrame would end a case only after the next has run
        one_host = all(schedulers.named(part.scheduler).is_one_host for part in (here.partitions if here else []))
        command = [
            *(paths.program("reframe"), *cases.words(tests.files), "-r", "--nocolor", "-S", f"campaign={campaign}"),
            *(["--exec-policy=serial"] if one_host else []),
            *(["-S", f"experiment={tests.experiment}"] if tests.experiment else []),
            *([f"--reruns={tests.rounds - 1}"] if tests.rounds > 1 else []),
            *_nodes_now(here, options),
            *options,
        ]
        print(f"campaign {campaign}: {' '.join(command)}", flush=True)
        # The end of a job or of a terminal is an interrupt too; a process in a shell's background ignores SIGINT.
        for number in programs.interrupting():
            signal.signal(number, signal.default_int_handler)
        begin = time.monotonic()
        code, ended = _follow(command, environment, here.name if here else "", tests)
        print()
        status = _report(campaign, tests.profile, code, ended, time.monotonic() - begin, tests.part)
        for line in tests.unbuilt:
            print(line, file=sys.stderr)
        return status or bool(tests.unbuilt)


def named(test: str) -> list[str]:
    """ReFrame's options for the tests whose names begin with what the regular expression ``test`` matches."""
    return ["-n", f"^(?:{test})"]


def _refuse_blank(here: Site | None) -> None:
    """Raise :class:`PlumbError` for a build folder whose name ReFrame, which starts job scripts itself, would split."""
    folder, parts = str(paths.build()), here.partitions if here else []
    if re.search(r"[\s'\"\\]", folder) and any(not schedulers.named(part.scheduler).has_jobs for part in parts):
        raise PlumbError(
            "the path of the build folder has a blank, a quote or a backslash, and ReFrame starts no script there",
            folder,
            "name another folder: --build, or PLUMB_BUILD",
        )


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
    counts, lines = choice.survey(here, [f"--{word}" for word in re.findall(r"\breservation=\S+", " ".join(extra))])
    for line in lines:
        print(line, flush=True)
    lowered = ",".join(f"{name}={count}" for name, count in counts.items())
    return ["-S", f"{choice.MAX_NODES}={lowered}"] if counts else []


def _configurations(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """The configuration files that ReFrame's ``options`` name, and the others: a ``-C`` would replace Plumbline's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-C", "--config-file", action="append", default=[])
    known, others = parser.parse_known_args(options)
    return known.config_file, others


def environment_of_reframe(variables: Mapping[str, str], theirs: Sequence[str] = ()) -> dict[str, str]:
    """This process's variables, those that ``activate`` sets for ReFrame, the folders in use, and ``variables``.

    ReFrame gets its configuration files of the user, and those of ``theirs``, behind Plumbline's; the system stays this
    host's site. Raises :class:`PlumbError` for a variable that would be set otherwise without a word.
    """
    activated = {"RFM_PREFIX": str(paths.home() / "build" / "reframe")}
    reframe_settings = {"RFM_PREFIX": str(paths.reframe())}
    ours = {str(settings.file()), str(paths.suite() / "site-configs" / "settings.py"), ""}
    added = [file for file in os.environ.get("RFM_CONFIG_FILES", "").split(":") if file not in ours]
    configured = [str(settings.file()), *(str(Path(file).absolute()) for file in (*added, *theirs))]
    here = site.claiming(site.load_all())
    for name, value in os.environ.items():
        known = surroundings.row(name)
        if known and known.programs == "refused" and value not in (activated.get(name), reframe_settings.get(name)):
            raise PlumbError(
                f"{name} is set, and ReFrame would not get it: its tests, settings and folders are Plumbline's",
                f"{name}={value}",
                f"unset {name}, or use reframe itself after . ./activate",
            )
    return {
        **({"RFM_SYSTEM": here.name} if here else {}),
        **os.environ,
        **paths.variables(),
        site.OPTIONS: "\n".join(site.options()),
        **reframe_settings,
        "RFM_CONFIG_FILES": ":".join(configured),
        **variables,
    }


def _follow(command: list[str], environment: dict[str, str], here: str, tests: Tests) -> tuple[int, list[Case]]:
    """Run ReFrame, print a line per test case with the time left, and return its exit status and the cases.

    ``here`` is the name of this host's site, whose earlier campaigns say how long a case takes.
    """
    ended: list[Case] = []
    earlier: list[list[tuple[str, float]]] | None = None
    is_quick = tests.profile == "quick" and tests.part is None
    before = time.monotonic()
    with (
        _log().open("w", encoding="utf-8") as stream,
        subprocess.Popen(
            command, env=environment, cwd=paths.suite(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True, preexec_fn=programs.die_with_parent,
        ) as child,
        terminal.bar(),
    ):  # fmt: skip
        try:
            for line in child.stdout or ():
                stream.write(line)
                if cases.LOADED in line:
                    before = time.monotonic()
                if progress := cases.ended(line):
                    case, number, total = progress
                    ended.append(replace(case, seconds=time.monotonic() - before))
                    if tests.rounds > 1:
                        number, total = len(ended), total * tests.rounds
                    before += ended[-1].seconds
                    if case.state != "SKIP":
                        if earlier is None:
                            earlier = outcome.earlier(here, tests.profile, total, case.test)
                        rest = left(ended, total, earlier, is_quick)
                        if tests.expected_s and not earlier:
                            rest = left_in_rounds(ended, total, tests)
                        text = f"about {units.human_seconds(rest)} left"
                        print(f"{number:>4}/{total} {case.state:<4} {case.label}  ({text})", flush=True)
                        terminal.progress(number, total, text)
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


def left(ended: Sequence[Case], total: int, earlier: Sequence[Sequence[tuple[str, float]]], is_quick: bool) -> float:
    """Seconds that the rest of ``total`` cases take, after a case that ran.

    ``earlier`` campaigns of the same cases say which run and how long they take. Before the first one a campaign that
    ``is_quick`` has :data:`QUICK`; without either the rest is like the cases that ended. Skips take no time: where jobs
    run beside one another they all come first, else they are mixed with the others.

    >>> skipped, done = Case("SKIP", "a"), Case("OK", "b", seconds=3)
    >>> left([skipped, skipped, done], 5, [], False), left([done, skipped, done], 6, [], False)
    (6.0, 6.0)
    """
    # one that failed says nothing of the time of others: it ended at once, or at its limit
    ran = [(case.test if case.state == "OK" else "", case.seconds) for case in ended if case.state != "SKIP"]
    usual = {test: statistics.median(seconds) for test, seconds in group(chain.from_iterable(earlier)).items()}
    count: Mapping[str, float] = Counter(test for test, _ in earlier[0]) if earlier else {}
    if is_quick and not earlier:
        usual = {test: seconds for test, (_, seconds) in QUICK.items()}
        count = {test: number * total / QUICK_CASES for test, (number, _) in QUICK.items()}
    done = Counter(case.test for case in ended if case.state != "SKIP")
    waiting = {test: max(0, number - done[test]) for test, number in count.items()}
    if not count:
        mixed = ended[next(place for place, case in enumerate(ended) if case.state != "SKIP") :]
        waiting = {"": (total - len(ended)) * len(ran) / len(mixed)}
    return units.time_left(ran, waiting, usual)


def left_in_rounds(ended: Sequence[Case], total: int, tests: Tests) -> float:
    """Seconds that the rest takes: each case as in the rounds before, in the first round by ``expected_s``.

    Where the first cases took longer than expected the others count as slower the more there were.

    >>> lab, case = Tests([], "lab", [], rounds=2, expected_s=80), Case("OK", "a", seconds=10)
    >>> left_in_rounds([case], 4, lab), left_in_rounds([case, replace(case, label="b"), case], 4, lab)
    (70.0, 10.0)
    >>> left_in_rounds([replace(case, seconds=60)], 8, replace(lab, expected_s=160))  # a quarter of the first round
    240.0
    """
    ran = [(case.label, case.seconds) for case in ended]
    waiting = {label: tests.rounds - number for label, number in Counter(label for label, _ in ran).items()}
    each, expected = total // tests.rounds, tests.expected_s / tests.rounds
    unseen, spent = each - len(waiting), sum(seconds for _, seconds in ran)
    usual = {}
    if unseen > 0:
        usual[""] = max((expected - spent) / unseen, expected / each + (spent - len(ran) * expected / each) / each)
        waiting[""] = tests.rounds * unseen
    return units.time_left(ran, waiting, usual)


def _report(campaign: str, profile: str, code: int, ended: list[Case], seconds: float, part: str | None = None) -> int:
    """Print the results, why the other cases have no figures, the closing line and the next step."""
    output = _log().read_text(encoding="utf-8", errors="replace")
    ended = cases.explained(ended, output)
    mine, damages = query.records(query.Selection(campaign=campaign))
    for damage in damages:
        print(f"plumb: damaged record: {damage}", file=sys.stderr)
    skips = Counter(case.reason or "no reason given" for case in ended if case.state == "SKIP")
    failed = [case for case in ended if case.failed]
    invalid = [row for row in mine if not row.is_valid]
    is_brief = bool(mine) and terminal.width() is not None
    if not is_brief:
        _print_whole(mine, invalid, failed, skips)
    for name in sorted({row.site for row in mine}):
        kept = ((case.state, case.label, case.reason, round(case.seconds, 3)) for case in ended)
        outcome.write(name, campaign, profile, kept, outcome.INTERRUPTED if code == INTERRUPTED else part)
    if not ended and code == INTERRUPTED:
        return code
    if not ended:
        why, cure = cases.last_words(output), cases.WHOLE
        if why == cases.NONE_SELECTED:
            listed = "reframe -c reframe-tests -l lists the tests, plumb stack list the stacks"
            cure = "--profile full selects among all tests" if profile == "quick" else listed
        raise PlumbError(f"no test ran: {why}", str(_log()), cure)
    known = Campaign([(record, place) for place, record in enumerate(query.of_rows(mine)[0])])
    took = units.human_seconds(seconds)
    end = [f"{summary.closing(mine)}; {sum(skips.values())} skipped, {len(failed)} failed, in {took}"]
    if mine and profile in outcome.WHOLE and not part:
        end.append(f"Is this machine fine? {answer.sentence(known)}")
    elif known.disturbance:
        end.append(f"{known.disturbance}: the figures say little")
    end.append(f"plumb report makes a page of it, plumb show ID shows all of a line; ReFrame's output: {_log()}")
    measured = bool(mine or any(case.state == "OK" for case in ended))  # a check of the suite itself leaves no record
    if step := _next(mine, failed, bool(known.disturbance)):
        end.append(f"next: {step}")
    faults = [
        *(f"{case.describe()}: {case.reason or 'ReFrame gives no reason'}" for case in failed),
        *(f"{row.variant.name} on {row.stack.name}: {', '.join(row.faults) or row.verdict}" for row in invalid),
        *map(str, known.faults),
    ]
    print(brief.text(mine, faults, end) if is_brief else "\n".join(["", *end]))
    if why := _why(failed, len(invalid), measured, skips):
        print(why, file=sys.stderr)
    return code or (1 if why else 0)


def _print_whole(mine: Sequence[Row], invalid: Sequence[Row], failed: Sequence[Case], skips: Counter[str]) -> None:
    """The table of all variants, the other cases, and the last lines of launches that failed."""
    if mine:
        print("\n".join([summary.lines(mine), *summary.legend(mine)]))
    if mine and (skips or failed):
        print()
    for reason, count in skips.most_common():
        print(f"skipped {count:>3} x {reason}")
    for case in failed:
        print(f"failed {case.describe()}: {naming.shorten(case.reason or 'ReFrame gives no reason', REASON_LENGTH)}")
    for record in query.of_rows(invalid[:OUTPUTS])[0]:  # the last lines of its launches before they failed
        if lines := show.output(record):
            print(f"\n{record.variant.name} on {record.stack.name} ({record.id}), {lines}")


def _why(failed: Sequence[Case], invalid: int, measured: bool, skips: Mapping[str, int]) -> str:
    """Why the campaign's exit status is 1, in a line; empty where all is well."""
    reasons = [f"{units.counted(len(failed), 'case')} failed"] if failed else []
    reasons += [f"{units.counted(invalid, 'variant')} not valid"] if invalid else []
    if not measured and not failed:
        often = max(skips, key=lambda reason: skips[reason], default="")
        all_skipped = f": all {sum(skips.values())} were skipped, {skips[often]} x {often}" if skips else ""
        reasons.append(f"no variant was measured{all_skipped}")
    return "; ".join(reasons)


def _next(mine: Sequence[Row], failed: Sequence[Case], disturbed: bool) -> str | None:
    """The most useful step after a campaign; None where there is nothing to do."""
    if invalid := next((row for row in mine if not row.is_valid), None):
        return f"plumb show {invalid.id} shows what went wrong in {invalid.variant.name} on {invalid.stack.name}"
    if failed:
        stage = failed[0].stage
        if stage and any(Path(stage).glob("*.err")):
            return f"the first failed job's own words: tail {stage}/*.err"
        return (
            f"all that ReFrame says of it, which has no job with words of its own: grep -A 20 'FAILURE INFO' {_log()}"
        )
    if disturbed:
        return AGAIN
    if any(row.verdict == "unreferenced" for row in mine):
        return "two more campaigns; then plumb calibrate makes references of all three"
    return None


def built(
    file: Path, state: Source, stacks: Sequence[str], say: Callable[[str], None]
) -> tuple[list[build.Built], list[str]]:
    """The application of ``file`` in a ``state`` of its code, built with each of ``stacks``, and why not with others.

    Raises :class:`PlumbError` where it is built with none.
    """
    builds, faults = list[build.Built](), dict[str, PlumbError]()
    for name in stacks:
        try:
            builds.append(build.build(file, state, manifests.load(name), say))
        except PlumbError as error:
            faults[name] = error
    for fault in faults.values():
        if not builds:
            raise fault
        say(str(fault))
    messages = {name: fault.message.rpartition(f"fails with {name}: ")[2] for name, fault in faults.items()}
    return builds, [f"not built with {name}: {message}" for name, message in messages.items()]


def prepared(
    file: Path, state: Source, stacks: Sequence[str], folder: Path, say: Callable[[str], None], test: str | None = None
) -> Tests:
    """The tests of the application of ``file`` in a ``state`` of its code, built with each of ``stacks``.

    ``test`` is a regular expression that their names begin with. Their list for ReFrame is written to ``folder``.
    """
    builds, unbuilt = built(file, state, stacks, say)
    runnable = build.Runnable.of(builds)
    listing = folder / f"reframe.{state.key}.json"
    files.replace(listing, msgspec.json.encode(runnable).decode())
    variables = {build.VARIABLE: str(listing), build.PATTERN: test or ""}
    return Tests([Path(__file__).with_name("applications.py")], runnable.code.name, [], variables, unbuilt=unbuilt)


def offered_stacks(file: Path | None) -> list[str]:
    """The stacks that this host's site offers and that the application of ``file``, if there is one, can use.

    Raises :class:`PlumbError` if there is none.
    """
    if (here := site.claiming(site.load_all())) is None:
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
