"""The proof: fresh pairs of default and tuned by the gate, over every operation, size and placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.gate import decide, from_records, measure, rules, run, session
from plumbline.gate.session import Session
from plumbline.mpi.settings import Configuration
from plumbline.records import model, store
from plumbline.stacks import tuned
from plumbline.statistics.sequential import LOOKS, Rule
from plumbline.tune.bench import Bench
from plumbline.tune.curves import Row
from plumbline.tune.curves import rows as all_rows
from plumbline.tune.race import DEFAULT

#: a gain has to be above 1 %, a loss of more than 1 % withdraws the setting
RULE = Rule(gain=True)


@dataclass(frozen=True)
class Confirmed:
    """What the gate says of a configuration: a verdict for every row under every placement."""

    configuration: Configuration
    verdicts: dict[tuple[str, Row], decide.Verdict]
    session: str

    def rows(self, *states: str) -> list[tuple[str, Row]]:
        """The placements and rows whose verdict is one of ``states``."""
        return [key for key, verdict in self.verdicts.items() if verdict.verdict in states]

    @property
    def harms(self) -> bool:
        """Whether any row is certainly slower, or cannot be judged although there were pairs enough."""
        spoiled = [key for key in self.rows("INVALID") if self.verdicts[key].pairs >= LOOKS[0]]
        return bool(self.rows("FAIL") or spoiled)

    @property
    def unproven(self) -> str | None:
        """Why nothing can be said, by the reason of most rows: too few pairs, or undecided; None if it can."""
        open_rows = self.rows("INCONCLUSIVE", "INVALID")
        if self.harms or self.gains or 2 * len(open_rows) <= len(self.verdicts):
            return None
        return Counter(self.verdicts[key].reason for key in open_rows).most_common(1)[0][0]

    @property
    def gains(self) -> bool:
        """Whether it is worth having: something is certainly faster, and nothing is slower."""
        return bool(self.rows("GAIN")) and not self.harms


def confirm(bench: Bench, name: str, configuration: Configuration) -> Confirmed:
    """Judge ``configuration`` against the default with pairs of its own, or by the records of a finished stage.

    A stage that proved nothing has not finished: a tuning that is resumed measures more of its pairs.
    """
    file = bench.kept(name)
    if file is None:
        verdicts, session_name = _measure(bench, name, configuration)
    else:
        verdicts, session_name = decide.decide(from_records.read(file), RULE), file.stem
    places = [(placement, row) for placement in bench.asked.placements for row in all_rows(bench.asked.sizes)]
    found = Confirmed(configuration, dict(zip(places, verdicts, strict=True)), session_name)
    if file is None and not found.unproven:
        bench.keep(name, store.session_file(bench.asked.site, session_name))
    return found


def _measure(bench: Bench, name: str, configuration: Configuration) -> tuple[Sequence[decide.Verdict], str]:
    folder = bench.folder / name
    if not (folder / session.STATE).exists():
        session.save(folder, _session(bench, configuration))
    begun = session.peek(folder)
    log = (folder / "gate.out").open("a", encoding="utf-8")
    with log:

        def say(line: str) -> None:
            print(line, file=log, flush=True)
            if line.startswith("pair "):  # the rest of the line has every figure
                bench.say(line.partition("  tune ")[0].rstrip())

        bench.say(f"{name}: pairs of default and tuned, {bench.asked.minutes:g} min at most")
        outcome = run.resume(folder, measure.Stop(bench.asked.minutes, first_fail=True), say)
    return outcome.verdicts, begun.name


def _session(bench: Bench, configuration: Configuration) -> Session:
    asked = bench.asked
    sides = [bench.variants(one, "confirm", 1) for one in (DEFAULT, configuration)]
    couples = [
        [rules.settle(model.document(variant), [], "", RULE) for variant in couple]
        for couple in zip(*sides, strict=True)
    ]
    return Session(
        name=store.new_session(),
        site=asked.site,
        seed=asked.seed,
        rule=RULE,
        baseline=asked.stack,
        candidate=asked.stack + tuned.suffix(asked.nodes),
        couples=couples,
        notes=[],
        command=["plumb", "tune", asked.stack],
        circumstances=session.circumstances([asked.stack]),
    )
