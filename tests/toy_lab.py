"""A lab without weights or clock: the toy target behind ``Lab``'s interface, every cycle at a price known in advance.

Run as a program it sweeps, slowly enough to be killed, and prints the table.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from specnb import decoder, drafters, measure, store, sweep
from specnb.journal import Journal
from specnb.policy import Fixed
from specnb.prompts import Prompt
from specnb.records import CostCurve, Cycle, DraftPrice, Limits, Machine, ModelInfo, Rehearsal, Run, Sampling
from specnb.toy import ToySampler, ToySession
from specnb.turns import Timed

PASS_MS = {n: 10.0 + 1.5 * (n - 1) for n in range(1, 18)}
DRAFT_MS = {"draft_model": 1.0, "layer_skip": 6.0}
"""draft_model: nearly the target; layer_skip: another model, and a dear one."""

INFO = ModelInfo("toy", "toy", "F32", 1, 1, 1, 1, 8, 512)
PROMPTS = tuple(
    Prompt(kind, kind, text) for kind, text in (("copy", "01201201201201"), ("free", "7"), ("other", "3456"))
)
PLAN = sweep.Plan(("ngram_simple", "draft_model", "layer_skip"), (1, 2, 4, 6), PROMPTS, max_tokens=40)


class ToyLab:
    """seconds: of every run, really slept. noise: how far a pass may take more or less, as a share."""

    def __init__(self, *, seconds: float = 0.0, noise: float = 0.0) -> None:
        self.session = ToySession(8, seed=3, sharpness=3.0)
        self.model = SimpleNamespace(info=INFO)
        self.threads = 1
        self.runs = 0
        self._seconds = seconds
        self._noise = noise

    def digests(self, names):
        return tuple(names)

    def drafter(self, name):
        if name == "draft_model":
            return drafters.DraftModel(ToySession(8, seed=3, sharpness=2.6))
        if name == "layer_skip":
            skip = drafters.DraftModel(ToySession(8, seed=5, sharpness=2.0))
            skip.name = name
            return skip
        return {"none": drafters.NoDrafter, "ngram_simple": drafters.NgramSimple}[name]()

    def draft_price(self, name, _prompt):
        return DraftPrice(name, DRAFT_MS[name], DRAFT_MS[name])

    def run(self, prompt, name, *, k, p_min, max_tokens, stopped=lambda: False):
        self.runs += 1
        time.sleep(self._seconds)
        tokens = tuple(int(character) for character in prompt.text)
        policy = Fixed(self.drafter(name), Limits(k=k, p_min=p_min))
        decoder.prefill(self.session, policy, tokens)
        cycles = decoder.decode(self.session, policy, ToySampler(Sampling()), tokens, max_tokens=max_tokens)
        priced = tuple(self._priced(cycle, name, k) for cycle in cycles)
        return Run(tokens, priced, name, k, 0, p_min, Sampling(), 0.0, prompt_kind=prompt.kind)

    def rehearse(self, prompt, name, *, k, max_tokens, stopped=lambda: False):
        rehearsing = drafters.Rehearsing(self.drafter(name))
        self.runs += 1
        time.sleep(self._seconds)
        tokens = tuple(int(character) for character in prompt.text)
        policy = Fixed(rehearsing, Limits(k=k))
        decoder.prefill(self.session, policy, tokens)
        cycles = decoder.decode(self.session, policy, ToySampler(Sampling()), tokens, max_tokens=max_tokens)
        text = tuple(token for cycle in cycles for token in cycle.emitted)
        return Rehearsal(text, tuple(rehearsing.drafts), k, rereads=False)

    def in_turns(self, prompt, settings, *, max_tokens, stopped=lambda: False, seed=0):
        runs = {}
        for setting in settings:
            if not stopped():
                runs[setting] = self.run(
                    prompt, setting.drafter, k=setting.k, p_min=setting.p_min, max_tokens=max_tokens
                )
        return {setting: Timed(run, 1e3 * run.decode_s / run.emitted, 0) for setting, run in runs.items()}

    def _priced(self, cycle: Cycle, name: str, k: int) -> Cycle:
        drafted = len(cycle.drafted)
        computed = drafted + (cycle.confidences is not None and drafted < k)
        shake = 1.0 + self._noise * ((self.runs * 7919 % 101) / 50.0 - 1.0)
        verify_s = shake * PASS_MS[1 + drafted] / 1e3
        return replace(
            cycle, draft_s=computed * DRAFT_MS.get(name, 0.0) / 1e3, verify_s=verify_s, sampling_s=0.0, other_s=0.0
        )


def cost_curve(_session, ns, **_settings) -> CostCurve:
    return CostCurve("toy", tuple((n, PASS_MS[n]) for n in ns for _ in range(3)), 10, 1, Machine("a toy"), INFO)


def quiet(monkeypatch=None) -> None:
    """No model is measured and no other program counts."""
    swap = monkeypatch.setattr if monkeypatch else setattr
    swap(measure, "cost_curve", cost_curve)
    swap(sweep.machine.CoreWatch, "busy_elsewhere", lambda _watch: 0.0)


def main(path: str, method: str) -> None:
    quiet()
    sweeper = sweep.Sweeper(ToyLab(seconds=0.02), PLAN, method=method, journal=Journal(Path(path), key="toy"))
    found = replace(sweeper.run(), seconds=0.0)
    print(store.to_json(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
