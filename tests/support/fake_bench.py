"""A bench of a live gate that makes its numbers up."""

import math

import msgspec
import numpy as np
import samples

from plumbline.records import model
from plumbline.records.launch import Launch


class FakeBench:
    """Values depend on variant, side and index only, so an interrupted gate can be held against a whole one."""

    def __init__(self, begun, ratio=1.0, noise=0.01, disturbed=None, flag=None, spoil=None, stop=None):
        self.begun, self.ratio, self.noise = begun, ratio, noise
        self.disturbed = disturbed or (lambda order: False)
        self.flag = flag or (lambda side, index: False)
        self.spoil, self.stop = spoil or {}, stop
        self.started = []
        self.made = {}

    def records(self, position, found):
        if found is None:
            found = [
                model.convert(
                    samples.record(
                        id=f"{2 * position + side:012x}",
                        session=self.begun.name,
                        variant=variant,
                        state="running",
                        launches=[],
                        figures=[],
                    )
                )
                for side, variant in enumerate(self.begun.couples[position])
            ]
        self.made[position] = found
        return found

    def launch(self, which, index, order):
        position, side = divmod(which, 2)
        if self.stop is not None and order == self.stop[0]:
            raise self.stop[1]
        self.started.append((position, side, index, order))
        draw = np.random.default_rng([7, position, side, index])
        slower = self.ratio[position] if isinstance(self.ratio, list) else self.ratio
        value = 10000 / (slower if side else 1) * math.exp(draw.normal(0, self.noise))
        launch = samples.launch(order, value, index=index)
        if self.disturbed(order) or self.flag(side, index):
            launch["disturbed"] = True
            launch["disturbance"] = {"disturbed": True, "causes": ["steal"], "figures": {}}
        launch.update(self.spoil.get((position, side, index), {}))
        return msgspec.convert(launch, Launch)

    def settle(self, which):
        record = self.made[which // 2][which % 2]
        record.reasons = [reason for launch in record.launches for reason in launch.reasons]
        record.verified = not record.reasons
        record.verdict = "invalid" if record.reasons else "unreferenced"
