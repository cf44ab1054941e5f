"""A bench of a live gate that makes its numbers up."""

import math
from types import SimpleNamespace

import msgspec
import numpy as np
import samples

from plumbline.gate.live import AGAIN, GateBench
from plumbline.gate.same import Unseen
from plumbline.records import model
from plumbline.records.launch import Launch


class FakeBench(GateBench):
    """Values depend on variant, side and index only, so an interrupted gate can be held against a whole one."""

    def __init__(
        self, begun, folder, ratio=1.0, noise=0.01, disturbed=None, flag=None, spoil=None, stop=None, equal=()
    ):
        self.begun, self.folder, self.again = begun, folder, AGAIN
        self.ratio, self.noise, self.equal = ratio, noise, equal
        self.disturbed = disturbed or (lambda order: False)
        self.flag = flag or (lambda side, index: False)
        self.spoil, self.stop = spoil or {}, stop
        self.started = []
        every = [variant for couple in begun.couples for variant in couple]
        self.jobs = [SimpleNamespace(record=_record(begun, which, variant)) for which, variant in enumerate(every)]

    def same(self, position):
        return position in self.equal, []

    def program(self, which):
        raise Unseen("nothing is launched")

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
        record = self.jobs[which].record
        record.reasons = [reason for launch in record.launches for reason in launch.reasons]
        record.verified = not record.reasons
        record.verdict = "invalid" if record.reasons else "unreferenced"


def _record(begun, which, variant):
    made = samples.record(
        id=f"{which:012x}", session=begun.name, variant=variant, state="running", launches=[], figures=[]
    )
    return model.convert(made)
