"""How much a tuning launches, before it begins."""

from __future__ import annotations

import math

from plumbline.base.units import counted
from plumbline.extras.tune import race
from plumbline.extras.tune import stages as tune
from plumbline.measure.session import USUAL_LAUNCH_S
from plumbline.stacks import manifest as manifests


def text(
    stack: str, places: int, nodes: int, only_screen: bool, minutes_of_pairs: float, program: str | None = None
) -> str:
    """How many launches at most at ``places`` places, stage by stage, and about how long they take.

    ``program``: the one that the tuning is for.
    """
    knobs = race.wanted(manifests.load(stack).family.knobs, (), True, nodes)
    stages = {"screen": tune.SCREEN}
    count = len(race.alone(knobs)) + len(race.pairs(knobs)) + 1
    for number, rounds in enumerate(race.ROUNDS, 1):
        stages[f"race {number}"] = (count + 1) * rounds
        count = max(race.LEAST, math.ceil(count / race.KEPT)) + math.comb(race.LEAST, 2)
    algorithms = [knob for knob in knobs if race.is_algorithm(knob)]
    running = [knob for knob in algorithms if knob.when == "running"]
    bundles = race.bundles([knob for knob in algorithms if knob not in running], race.DEFAULT)
    stages["algorithms"] = (len(running) + (len(bundles) + 2 if bundles else 0)) * tune.ALGORITHM_ROUNDS
    if only_screen:
        stages = {"screen": tune.SCREEN}
    elif program:
        stages = {f"profile of {program}": 1, **stages}
    lines = [f"{name}: {counted(launches * places, 'launch')}" for name, launches in stages.items()]
    minutes = sum(stages.values()) * places * USUAL_LAUNCH_S / 60
    lines.append(f"about {minutes:.0f} min, if a launch takes {USUAL_LAUNCH_S:.0f} s")
    if not only_screen:
        by = f"by {program}" if program else "by the kernel, as much by OSU and IMB"
        most = f"{minutes_of_pairs:g} min at most {by}"
        lines.append(f"then pairs: {most}, up to {tune.TRIES} times")
    return "\n".join(lines)
