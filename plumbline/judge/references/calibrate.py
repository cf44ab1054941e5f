"""References from the records of several sessions."""

from __future__ import annotations

import io
import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import SingleQuotedScalarString

from plumbline import site
from plumbline.base import files, group, schemas, terminal
from plumbline.base.errors import PlumbError
from plumbline.host import limits
from plumbline.judge.references import match
from plumbline.judge.references.match import Calibrated, Calibration, Document, Entry
from plumbline.records.figure import Figure, step_of
from plumbline.records.model import AnyRecord
from plumbline.site import family
from plumbline.site.write import yaml_editor
from plumbline.statistics import basic, special

#: the narrowest tolerance of a calibrated reference, and the widest that is worth having
NARROWEST, WIDEST = 0.05, 0.5
#: probability that a new session of an unchanged machine is within, if sessions are independent and normal
CONFIDENCE = 0.99
HEADER = """\
# What {test} is expected to reach here. A record without an entry is shown as `unreferenced`.
# `plumb calibrate` writes the entries that have `method: calibrated`, and leaves all others and all comments alone.
schema: 1
test: {test}
references: []
"""


@dataclass(frozen=True)
class Change:
    """The change of one reference by a calibration. ``old`` is None for a new one."""

    old: Entry | None
    new: Calibrated
    #: why the old one stays as it is, if it does
    kept: str | None = None


@dataclass
class Calibrations:
    """The result of a calibration: changes by file of the site; how often a "record" or "figure" was refused."""

    changes: dict[str, list[Change]] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)


def propose(records: Sequence[AnyRecord], site_name: str, min_sessions: int = 3) -> Calibrations:
    """The references of a site by its ``records`` (oldest first); nothing is written.

    Refused are records that are not complete, verified, valid or below their physical limit, and those with most
    launches disturbed. For each variant, stack and placement only the records of the newest stack manifest count, and
    of those only what was measured with the newest one's settings, variables, build and program.
    Raises :class:`PlumbError` for ``min_sessions`` below 2.
    """
    if min_sessions < 2:
        raise PlumbError("one session says nothing about the next", "plumb calibrate --min-sessions", "2 or more")
    present = match.References.load(site_name)
    refusals = [(record, refusal(record)) for record in records if record.site == site_name]
    calibrations = Calibrations(refused=Counter(("record", reason) for _, reason in refusals if reason))
    usable = [(record, figure) for record, reason in refusals if not reason for figure in record.figures]
    groups = group(
        (msgspec.json.encode(match.subject(row, figure.name), order="sorted"), (row, figure)) for row, figure in usable
    )
    with terminal.bar():
        for done, key in enumerate(sorted(groups), 1):
            terminal.progress(done, len(groups), "figures")
            try:
                new = entry(groups[key], min_sessions)
            except PlumbError as error:
                calibrations.refused["figure", error.message] += 1
                continue
            reference = present.resolve(groups[key][-1][0], new.figure)
            old = reference.entry if reference else None
            kept = f"{old.method}, left alone" if old is not None and not isinstance(old, Calibrated) else None
            calibrations.changes.setdefault(family(new.test), []).append(Change(old, new, kept))
    return calibrations


def refusal(record: AnyRecord) -> str | None:
    """Why a record cannot be calibrated from, None if it can."""
    reasons = {
        "not complete": record.state != "complete",
        "not verified": not record.is_verified,
        "profiled": record.is_profiled,
        "invalid": record.reasons or record.verdict == "invalid" or not record.figures,
        "most launches disturbed": 2 * record.disturbed_count > record.launch_count,
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), None):
        return reason
    for figure in record.figures:
        if not all(math.isfinite(sample) and sample > 0 for sample in [figure.value, *figure.samples]):
            return "not a positive, finite number"
        if figure.limit and max(figure.samples) > figure.limit.value * limits.TOLERANCE:
            return "above the physical limit"
    return None


def entry(figures: Sequence[tuple[AnyRecord, Figure]], min_sessions: int) -> Calibrated:
    """The reference that a figure of some records gives: the median over sessions of the sessions' medians.

    Its bounds, fractions of it, are the prediction interval of the next session at :data:`CONFIDENCE` (Student's t; the
    spread is from the median absolute deviation) with a step of the printed values, but at least :data:`NARROWEST`.
    Raises :class:`PlumbError` for too few sessions, and for bounds above :data:`WIDEST`.
    """
    newest, figure = figures[-1]
    same = [
        (record, item)
        for record, item in figures
        if record.stack.sha256 == newest.stack.sha256
        and (item.unit, item.better) == (figure.unit, figure.better)
        and record.variant.circumstances == newest.variant.circumstances
    ]
    sessions = group((record.session, sample) for record, item in same for sample in item.samples)
    medians = [statistics.median(values) for values in sessions.values()]
    if len(medians) < min_sessions:
        raise PlumbError(f"fewer than {min_sessions} sessions")
    value = statistics.median(medians)
    spread = basic.FROM_DEVIATION * statistics.median([abs(item - value) for item in medians]) / value
    quantile = float(special.stdtrit(len(medians) - 1, (1 + CONFIDENCE) / 2) * math.sqrt(1 + 1 / len(medians)))
    step = step_of((item, 1.0) for _, item in same) / value
    tolerance = max(NARROWEST, quantile * spread + step)
    if tolerance > WIDEST:
        raise PlumbError(f"sessions too different for bounds of {WIDEST:.0%}")
    rounded = math.ceil(tolerance * 1000) / 1000
    return Calibrated(
        **structs.asdict(match.subject(newest, figure.name)),
        value=float(f"{value:.6g}"),
        unit=figure.unit,
        better=figure.better,
        lower=-rounded,
        upper=rounded,
        source=Calibration(
            records=[record.id for record, _ in same],
            sessions=len(medians),
            dates=[same[0][0].time[:10], newest.time[:10]],
            spread=round(spread, 5),
            nodes=sorted({node for record, _ in same for node in record.nodes}),
            stack_sha256=newest.stack.sha256,
            suite_commit=newest.suite.commit,
        ),
    )


def write(site_name: str, calibrations: Calibrations) -> list[Path]:
    """Write the changes that are not kept back into the site's reference files; the files written are returned.

    Each file is replaced in one step. Other entries, their order and all comments stay as they are.
    """
    folder = site.folder(site_name) / "references"
    texts = {
        folder / f"{name}.yaml": merged(folder / f"{name}.yaml", name, wanted)
        for name, changes in calibrations.changes.items()
        if (wanted := [change.new for change in changes if change.kept is None and change.new != change.old])
    }
    for file, text in texts.items():  # only when all could be made
        files.write("references", file, text)
    return list(texts)


def merged(file: Path, name: str, wanted: Sequence[Calibrated]) -> str:
    """The text of a reference file with ``wanted`` in place of the entries that match the same records, or added.

    Raises :class:`PlumbError` for a file that cannot be read or does not obey its schema.
    """
    editor = yaml_editor()
    editor.Representer = _Representer
    try:
        before = file.read_text(encoding="utf-8") if file.exists() else HEADER.format(test=name)
        document = editor.load(before)
    except OSError as error:
        raise PlumbError(f"cannot read references: {error.strerror}", str(file), "fix the permissions") from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise PlumbError(f"references are not YAML: {error}", str(file), "fix the file") from None
    entries = _entries(document, file)
    if not entries:
        document["references"].fa.set_block_style()
    present = group((each.key, (each, item)) for each, item in zip(entries, document["references"], strict=True))
    for new in wanted:
        members: dict[str, Any] = msgspec.to_builtins(new)
        members |= {member: members.pop(member) for member in ("method", "source")}  # the order in which people read
        old = next((item for each, item in present.get(new.key, []) if each.overlaps(new)), None)
        if old is None:
            document["references"].append(_commented(members))
            continue
        for key, value in members.items():
            if old.get(key) != value:
                old[key] = _commented(value)
    _entries(document, file)
    stream = io.StringIO()
    editor.dump(document, stream)
    return stream.getvalue()


def _entries(document: Any, file: Path) -> list[Entry]:
    """The entries of a document that ruamel read, whose texts and numbers are types of its own."""
    return schemas.convert("references", json.loads(json.dumps(document, default=str)), Document, str(file)).references


class _Representer(RoundTripRepresenter):
    """Writes ``null`` as that word, not as nothing."""


_Representer.add_representer(
    type(None), lambda represent, _: represent.represent_scalar("tag:yaml.org,2002:null", "null")
)


def _commented(value: Any) -> Any:
    """``value`` for ruamel: mappings and lists inside an entry on one line each where they are short."""
    if isinstance(value, dict):
        mapping = CommentedMap({key: _commented(item) for key, item in value.items()})
        if all(not isinstance(item, (dict, list)) for item in value.values()):
            mapping.fa.set_flow_style()
        return mapping
    if isinstance(value, list):
        sequence = CommentedSeq([_commented(item) for item in value])
        sequence.fa.set_flow_style()
        return sequence
    # quotes for a word such as `on`, which readers of YAML 1.1 take for something else
    return SingleQuotedScalarString(value) if isinstance(value, str) and schemas.parse_yaml(value) != value else value
