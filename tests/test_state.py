"""What an interrupt, a stop or an error leaves behind: nothing that the next run could tell.

Interrupts are raised at random lines of the package while it runs, as Ctrl-C does between any two
steps of Python; the same seed picks the same lines each time.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
import tiny_models

from specnb import drafters, machine
from specnb.backend import Model, Sampler, Session
from specnb.decoder import decode, prefill
from specnb.drafters import Drafter
from specnb.lab import Lab
from specnb.policy import Fixed
from specnb.records import Context, Cycle, Draft, Limits, Sampling
from specnb.toy import ToySampler, ToySession
from specnb.widgets.worker import Worker

PACKAGE = str(Path(drafters.__file__).resolve().parents[1])
N_VOCAB = 8
PROMPT = (1, 4, 2, 0, 6) * 4
TOY_POINTS, LAB_POINTS = 40, 30


class Interrupter:
    """Counts the lines of the package that run, and raises KeyboardInterrupt at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.lines = 0
        self.raised = False
        self._at = at

    def __enter__(self) -> Interrupter:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_exc: object) -> None:
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., object] | None:
        return self._line if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _line(self, _frame: FrameType, event: str, _argument: object) -> Callable[..., object]:
        if event == "line":
            self.lines += 1
            if self.lines == self._at:
                self.raised = True
                raise KeyboardInterrupt
        return self._line


def interrupted(use: Callable[[], object], n: int, seed: int) -> Iterator[None]:
    """Interrupts a use at n random lines, one after the other; yields after each."""
    use()  # the first use may do what later ones need not
    with Interrupter() as counting:
        use()
    order, raised = random.Random(seed), 0
    for _ in range(n):
        # One that hits a callback of native code is lost, as Ctrl-C is there.
        with suppress(KeyboardInterrupt), Interrupter(order.randint(1, counting.lines)) as interrupter:
            use()
        raised += interrupter.raised
        yield
    assert raised > 0.8 * n


# -- the loop over the toy ---------------------------------------------------------------------

TOY_DRAFTERS: Mapping[str, Callable[[], Drafter]] = {
    **{kind.name: (lambda kind=kind: kind(2, 6)) for kind in drafters.LOOK_UPS},
    "draft_model": lambda: drafters.DraftModel(ToySession(N_VOCAB, seed=2, sharpness=1.0)),
    "chain": lambda: drafters.Chain(
        (drafters.NgramMod(2, 6, 0), drafters.DraftModel(ToySession(N_VOCAB, seed=2, sharpness=1.0)))
    ),
}


def toy_cycles(session: ToySession, drafter: Drafter, **options: object) -> tuple[Cycle, ...]:
    """One sampled run; its clock stands still, so that equal runs compare equal."""
    policy = Fixed(drafter, Limits(k=4))
    prefill(session, policy, PROMPT)
    sampler = ToySampler(Sampling(temperature=0.7, seed=1))
    return tuple(decode(session, policy, sampler, PROMPT, max_tokens=40, clock=lambda: 0.0, **options))


@pytest.mark.parametrize("name", TOY_DRAFTERS)
def test_a_run_after_an_interrupt_anywhere_is_that_of_fresh_ones(name):
    make = TOY_DRAFTERS[name]
    fresh = toy_cycles(ToySession(N_VOCAB), make())
    session, drafter = ToySession(N_VOCAB), make()
    for _ in interrupted(lambda: toy_cycles(session, drafter), TOY_POINTS, seed=len(name)):
        assert toy_cycles(session, drafter) == fresh


@pytest.mark.parametrize("name", TOY_DRAFTERS)
def test_a_run_after_a_stop_between_any_two_cycles_is_that_of_fresh_ones(name):
    make = TOY_DRAFTERS[name]
    fresh = toy_cycles(ToySession(N_VOCAB), make())
    session, drafter = ToySession(N_VOCAB), make()
    for n in range(len(fresh)):
        asked = iter(range(n + 1))
        stopped = toy_cycles(session, drafter, stopped=lambda asked=asked, n=n: next(asked) == n)
        assert stopped == fresh[:n]
    assert toy_cycles(session, drafter) == fresh


class Failing:
    """A drafter whose n-th call raises."""

    name = "failing"

    def __init__(self, drafter: Drafter, fails_at: int) -> None:
        self._drafter, self._left = drafter, fails_at

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise ZeroDivisionError("a mistake of the reader's")

    def begin(self, prompt: tuple[int, ...]) -> None:
        self._count()
        self._drafter.begin(prompt)

    def propose(self, context: Context, limits: Limits) -> Draft:
        self._count()
        return self._drafter.propose(context, limits)

    def observe(self, cycle: Cycle, *, mine: bool) -> None:
        self._count()
        self._drafter.observe(cycle, mine=mine)


@pytest.mark.parametrize("name", TOY_DRAFTERS)
def test_a_run_after_an_error_in_a_drafter_is_that_of_fresh_ones(name):
    make = TOY_DRAFTERS[name]
    fresh = toy_cycles(ToySession(N_VOCAB), make())
    session, drafter = ToySession(N_VOCAB), make()
    for fails_at in range(1, 2 * len(fresh) + 2):
        with pytest.raises(ZeroDivisionError):
            toy_cycles(session, Failing(drafter, fails_at))
        assert toy_cycles(session, drafter) == fresh


# -- llama.cpp's sessions ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Path:
    """A random model whose last layer adds nothing: without it, a good draft."""
    return tiny_models.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf", "llama", layers=range(5), idle=(4,))


@pytest.fixture
def lab(target, monkeypatch, tmp_path) -> Iterator[Lab]:
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPECNB_DRAFT", raising=False)
    with Lab(str(target), threads=1, n_ctx=128) as opened:
        yield opened


def lab_cycles(lab: Lab, drafter: str, sampling: Sampling) -> tuple[Cycle, ...]:
    run = lab.run([5, 6, 7] * 5, drafter, k=3, max_tokens=16, sampling=sampling)
    still = {"draft_s": 0.0, "verify_s": 0.0, "sampling_s": 0.0, "other_s": 0.0}
    return tuple(replace(cycle, **still) for cycle in run.cycles)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=3)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("drafter", ["ngram_simple", "layer_skip"])
def test_a_lab_works_on_after_an_interrupt_anywhere(lab, drafter, sampling):
    def use() -> tuple[Cycle, ...]:
        lab.use_format("F16" if lab.session.closed or lab.format == "F32" else "F32")
        lab.use_format("F32")
        return lab_cycles(lab, drafter, sampling)

    fresh = use()
    assert len(fresh) < 16 or drafter == "ngram_simple"
    for _ in interrupted(use, LAB_POINTS // 4, seed=len(drafter)):
        assert use() == fresh
    for _ in interrupted(lambda: lab_cycles(lab, drafter, sampling), LAB_POINTS, seed=5):
        assert lab_cycles(lab, drafter, sampling) == fresh


def test_samplers_of_the_same_seed_share_nothing(target):
    with Model(target) as model, Session(model, n_ctx=64, threads=1) as session:
        session.extend([5, 6, 7], rows="last")
        sampling = Sampling(temperature=2.0, seed=9, top_k=0, top_p=1.0, min_p=0.0)

        def draws(sampler: Sampler, n: int) -> list[int]:
            return [sampler.draw(session, -1) for _ in range(n)]

        alone = draws(Sampler(sampling), 20)
        one, other = Sampler(sampling), Sampler(sampling)
        assert draws(one, 7) + draws(other, 0) == alone[:7]
        assert draws(other, 20) == alone
        assert draws(one, 13) == alone[7:]
        assert len(set(alone)) > 2


def test_stopping_a_worker_at_random_moments_leaves_the_lab_usable(lab):
    fresh = lab_cycles(lab, "layer_skip", Sampling())
    worker, order = Worker(), random.Random(3)
    for _ in range(20):
        enough, seen = order.randint(0, 12), []
        reached = threading.Event()

        def job(seen: list[Cycle] = seen, enough: int = enough, reached: threading.Event = reached) -> None:
            def on_cycle(cycle: Cycle) -> None:
                seen.append(cycle)
                if len(seen) >= enough:
                    reached.set()

            lab.run([5, 6, 7], "layer_skip", k=3, max_tokens=100, stopped=worker.stopped, on_cycle=on_cycle)
            reached.set()

        assert worker.start(job)
        assert reached.wait(30)
        worker.stop()
        worker.wait(30)
        assert not worker.busy and seen
    assert lab_cycles(lab, "layer_skip", Sampling()) == fresh
    assert not [thread for thread in threading.enumerate() if thread.name == "specnb-worker"]


def test_a_hundred_model_switches_do_not_grow_memory(target, lab, tmp_path):
    other = tiny_models.write(tmp_path / "other.gguf", "qwen2")

    def visit() -> None:
        for path in (target, other):
            with Model(path) as model, Session(model, n_ctx=512, threads=1, keep_states=True) as session:
                session.extend([1, 2, 3])
        for format in ("F16", "F32"):
            lab.use_format(format)
            lab.run([1, 2, 3], "layer_skip", k=2, max_tokens=4)
            lab.run([1, 2, 3], "draft_model", k=2, max_tokens=4)

    for _ in range(5):
        visit()
    before = machine.resident_mib()
    for _ in range(25):
        visit()
    assert machine.resident_mib() - before < 40
