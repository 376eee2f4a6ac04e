"""A bench to work at: one target and at most one draft in memory (``second`` texts keep theirs), released together.

What the notebooks and the live widget hold. All the measuring is ``measure``'s. What is called from outside works
``alone``: cells and widgets are different threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

from . import cycle_costs, drafters, ledger, machine, measure, messages, models, store, trained, turns
from .adaptive import Adaptive, Costs
from .alone import alone
from .backend import BatchSession, Model, Sampler, Session, VectorSession
from .decoder import Policy
from .drafters import Drafter
from .policy import Fixed
from .prompts import Prompt
from .records import (
    PLAIN,
    AdaptiveRun,
    CostCurve,
    Cycle,
    CycleCosts,
    DraftCost,
    DraftMemory,
    DraftPrice,
    Limits,
    LoadSweep,
    Rehearsal,
    Run,
    RunSet,
    Sampling,
    Setting,
)
from .text import Assembler, ending

LIVE_NS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17)
"""N that a live prediction needs: every k up to 8, then 10, 12 and 16."""

DRAFT_MODEL_DROPS, LAYER_SKIP_DROPS = 4, 7
"""Layers left out of the untrained drafts. "draft_model" is one of them for a target that is not the embedded model
when the reader names no draft: the subset that agrees more and costs more."""

DRAFTING_KS = (1, 4)
"""Draft lengths from which those of a model are told; every head can make both."""
DRAFTING_ROOM = 64
"""Tokens that their scripts may need beside the prompt."""

LONGEST_K = LIVE_NS[-1] - 1
"""The longest draft of the adaptive policy."""

OTHER_TOKENS = 24
"""Plain tokens from which sampling and bookkeeping are timed."""

MODEL_DRAFTERS = (drafters.DraftModel.name, drafters.LayerSkip.name, *trained.KINDS)
CHAIN = (drafters.NgramSimple.name, drafters.DraftModel.name)
"""What "chain" alone stands for."""

_AnySession = TypeVar("_AnySession", Session, VectorSession)


class Lab:
    """Opens a target by path, hub id, SPECNB_TARGET or (none of these) the embedded model.

    format: weight format to derive first (``models.FORMATS``); None leaves the file as it is.
    draft: a draft model for "draft_model"; None: SPECNB_DRAFT, then the distilled draft for the
    embedded model, and for any other a layer subset of it.
    A file that is not the embedded model is tried in a child process before it is opened here.
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        draft: str | None = None,
        format: str | None = None,
        threads: int | None = None,
        n_ctx: int = 2048,
    ) -> None:
        self.threads = threads or machine.usable_cores()
        self.n_ctx = n_ctx
        self._source = models.trusted(models.resolve(target))
        self._draft_name = draft
        self._draft: tuple[Path, Model, Session | VectorSession | None] | None = None
        """No session: to be opened when it is asked for (``second``)."""
        self._lent: list[Model] = []
        """Drafts on which a second text is being written, once for each: they stay open until it is done."""
        self._staircases: dict[str, CostCurve] = {}
        self._adaptive_costs: dict[str, Costs] = {}
        self._embedding: trained.Rows | None = None
        self._eagle_inputs: drafters.EagleInputs | None = None
        self._open(format)

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def embedded(self) -> bool:
        """Whether the target is the model that came with the install."""
        return models.is_embedded(self._source)

    @property
    def format(self) -> str:
        return self.model.format

    @alone()
    def use_format(self, format: str) -> None:
        """Changes the target's weight format. The old weights and the draft are released before the new ones load."""
        if self.session.closed or format != self.format:
            models.in_format(self._source, format)  # may fail, and then all is left as it is
            self.close()
            self._open(format)

    @alone()
    def close(self) -> None:
        self._release_draft()
        self.session.close()
        self.model.close()

    @alone()
    def prompt(self, text: str | Prompt) -> tuple[int, ...]:
        """Token ids of a message in the model's chat template."""
        return self.model.chat_prompt(text.text if isinstance(text, Prompt) else text)

    @alone()
    def drafter(self, name: str, *, n: int | None = None, m: int | None = None) -> Drafter:
        """A fresh drafter by name (``drafters.names()``); the chain is look-up first, then the draft model.

        Names with commas between them, as in llama.cpp's ``--spec-type``, are a chain in this order: at most one of
        them may run a model. n, m: longest pattern and longest draft of the look-ups; None leaves each its own.
        Raises ValueError for an unknown name and PairError when a draft model does not fit.
        """
        if len(members := _in_order(name)) > 1:
            if len(with_model := [member for member in members if member in MODEL_DRAFTERS]) > 1:
                raise ValueError(messages.chain_of_models(with_model))
            return drafters.Chain(tuple(self.drafter(member, n=n, m=m) for member in members))
        lengths = {key: value for key, value in {"n": n, "m": m}.items() if value is not None}
        makers: dict[str, Callable[[], Drafter]] = {
            drafters.NoDrafter.name: drafters.NoDrafter,
            **{kind.name: partial(kind, **lengths) for kind in drafters.LOOK_UPS},
            drafters.DraftModel.name: lambda: self._draft_model(self._draft_path()),
            drafters.LayerSkip.name: lambda: drafters.LayerSkip(
                self._draft_session(self._own_layers(LAYER_SKIP_DROPS))
            ),
            **{kind: partial(self._trained_drafter, kind) for kind in trained.KINDS},
        }
        if name not in makers:
            raise ValueError(f"There is no drafter {name!r}; there are {', '.join(drafters.names())}.")
        return makers[name]()

    @contextmanager
    def second(self, name: str, *, n_ctx: int | None = None) -> Iterator[tuple[Session, Drafter]]:
        """A second session of the target and a second drafter of that name, on the weights that are open already.

        For a text to be written in turn with another one. n_ctx: tokens that it may hold; the lab's own unless given.
        Raises what ``drafter`` raises.
        """
        self.drafter(name)  # loads what it needs, and opens the session anew where it has to
        session, draft = self.session, self._draft
        self.session = self._target_session(n_ctx=n_ctx, keep_states=session.states is not None)
        self._draft = draft and (draft[0], draft[1], None)
        try:
            drafter = self.drafter(name)
        finally:
            (other, other_draft), (self.session, self._draft) = (self.session, self._draft), (session, draft)
        lent = [other_draft[1]] if other_draft else []
        self._lent += lent
        try:
            yield other, drafter
        finally:
            other.close()
            if other_draft and other_draft[2] is not None:
                other_draft[2].close()
            for model in lent:
                self._lent.remove(model)
                if self._draft is None or self._draft[1] is not model:
                    self._close_draft(model)

    @alone()
    def run(
        self,
        text: str | Prompt | Sequence[int],
        drafter: str | Drafter = "none",
        *,
        k: int = 4,
        n_min: int = 0,
        p_min: float = 0.0,
        sampling: Sampling | None = None,
        max_tokens: int = 128,
        stop: Sequence[str] = (),
        exact: bool = False,
        stopped: Callable[[], bool] = lambda: False,
        on_cycle: Callable[[Cycle], None] = lambda _cycle: None,
    ) -> Run:
        """Generates once. text: a message, a Prompt, or token ids taken as they are. The rest as in ``measure.run``."""
        tokens = self.prompt(text) if isinstance(text, (str, Prompt)) else tuple(text)
        chosen = self.drafter(drafter) if isinstance(drafter, str) else drafter  # may open the session anew
        return measure.run(
            self.session,
            chosen,
            tokens,
            limits=Limits(k=k, n_min=n_min, p_min=p_min),
            sampling=sampling or Sampling(),
            max_tokens=max_tokens,
            prompt_kind=text.kind if isinstance(text, Prompt) else "",
            stop=stop,
            exact=exact,
            stopped=stopped,
            on_cycle=on_cycle,
        )

    @alone()
    def rehearse(
        self,
        text: str | Prompt,
        drafter: str,
        *,
        k: int,
        sampling: Sampling | None = None,
        max_tokens: int = 128,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Rehearsal:
        """What a drafter would draft at every place of an answer; a head's k is cut to what it was trained for."""
        chosen = self.drafter(drafter)
        k = min(k, getattr(chosen, "longest_k", k))
        rehearsing = drafters.Rehearsing(chosen)
        run = self.run(text, rehearsing, k=k, sampling=sampling, max_tokens=max_tokens, stopped=stopped)
        return Rehearsal(run.tokens, tuple(rehearsing.drafts), k, rereads=any(drafters.heads((chosen,))))

    @alone()
    def in_turns(
        self,
        text: str | Prompt,
        settings: Sequence[Setting],
        *,
        sampling: Sampling | None = None,
        max_tokens: int = 128,
        stopped: Callable[[], bool] = lambda: False,
        seed: int = 0,
    ) -> dict[Setting, turns.Timed]:
        """One answer with each setting, all written at once and in turns (``turns.race``, which gets the seed).

        Each has sessions of its own, which hold no more than they need. Where one of the settings drafts with a head,
        the target keeps its states for all of them.
        """
        for setting in settings:
            self.drafter(setting.drafter)  # may open the session anew, and then all seconds are as that one
        begin = partial(
            self._begin_beside, text, sampling=sampling or Sampling(), max_tokens=max_tokens, stopped=stopped
        )
        with ExitStack() as stack:
            texts = {setting: begin(stack, setting.drafter, setting.limits, _fixed(setting)) for setting in settings}
            return turns.race(texts, seed=seed)

    @alone()
    def race_adaptive(
        self,
        text: str | Prompt,
        fixed: Setting,
        costs: Costs,
        *,
        max_tokens: int = 128,
        stopped: Callable[[], bool] = lambda: False,
        seed: int = 0,
    ) -> tuple[RunSet, AdaptiveRun]:
        """Plain decoding, a fixed setting and the adaptive policy on the same answer, in turns as ``in_turns``.

        The runs in this order, and the last of them with its choices.
        """
        self.drafter(fixed.drafter)
        look_up, model = self.adaptive_drafters()  # last, since a head among them needs the target's states
        policies: list[Adaptive] = []

        def adaptive(drafter: Drafter) -> Adaptive:
            policies.append(Adaptive((look_up, drafter), costs, longest_k=LONGEST_K))
            return policies[0]

        begin = partial(self._begin_beside, text, sampling=Sampling(), max_tokens=max_tokens, stopped=stopped)
        with ExitStack() as stack:
            timed = turns.race(
                {
                    "plain": begin(stack, PLAIN.drafter, PLAIN.limits, _fixed(PLAIN)),
                    "fixed": begin(stack, fixed.drafter, fixed.limits, _fixed(fixed)),
                    "adaptive": begin(stack, model.name, Limits(k=LONGEST_K), adaptive, name=Adaptive.name),
                },
                seed=seed,
            )
        return RunSet(tuple(each.run for each in timed.values())), AdaptiveRun(
            timed["adaptive"].run, tuple(policies[0].picks)
        )

    def _begin_beside(
        self,
        text: str | Prompt,
        stack: ExitStack,
        drafter: str,
        limits: Limits,
        policy: Callable[[Drafter], Policy],
        *,
        sampling: Sampling,
        max_tokens: int,
        stopped: Callable[[], bool],
        name: str = "",
    ) -> turns.Generation:
        """A text about to be written in sessions of its own, which hold no more than they need. name: the drafter's."""
        prompt = self.prompt(text)
        session, own = stack.enter_context(self.second(drafter, n_ctx=len(prompt) + max_tokens + limits.k + 1))
        return measure.generation(
            session,
            policy(own),
            prompt,
            name=name or drafter,
            limits=limits,
            sampling=sampling,
            max_tokens=max_tokens,
            prompt_kind=text.kind if isinstance(text, Prompt) else "",
            stopped=stopped,
        )

    @alone()
    def adaptive_drafters(self) -> tuple[Drafter, ...]:
        """What the adaptive policy chooses from: a look-up, and the drafter with a model that costs least here."""
        model = drafters.Eagle.name if self.embedded else drafters.DraftModel.name
        return drafters.NgramSimple(m=LONGEST_K), self.drafter(model)

    @alone()
    def adaptive_costs(self, text: str | Prompt) -> Costs:
        """What the adaptive policy has to know beforehand, measured apart from any run; kept for the next text."""
        if self.format in self._adaptive_costs:
            return self._adaptive_costs[self.format]
        offered = self.adaptive_drafters()  # may open the session anew
        drafts = {each.name: self.draft_price(each.name, text) for each in offered}
        plain = self.run(text, max_tokens=OTHER_TOKENS)
        curve = self.staircase()
        costs = Costs(
            verify_ms=curve.median_ms,
            drafts=drafts,
            other_ms=1e3 * median(cycle.sampling_s + cycle.other_s for cycle in plain.cycles),
            switch_ms=measure.switch_ms(self.session),
        )
        if not curve.contended:
            self._adaptive_costs[self.format] = costs
        return costs

    @alone()
    def run_adaptive(
        self,
        text: str | Prompt | Sequence[int],
        costs: Costs,
        *,
        longest_k: int = LONGEST_K,
        sampling: Sampling | None = None,
        max_tokens: int = 128,
        stopped: Callable[[], bool] = lambda: False,
        on_cycle: Callable[[Cycle], None] = lambda _cycle: None,
    ) -> AdaptiveRun:
        """Generates once under the adaptive policy, which begins to learn anew."""
        tokens = self.prompt(text) if isinstance(text, (str, Prompt)) else tuple(text)
        policy = Adaptive(self.adaptive_drafters(), costs, longest_k=longest_k)  # may open the session anew
        run = measure.run_policy(
            self.session,
            policy,
            tokens,
            name=Adaptive.name,
            limits=Limits(k=longest_k),
            sampling=sampling or Sampling(),
            max_tokens=max_tokens,
            prompt_kind=text.kind if isinstance(text, Prompt) else "",
            stopped=stopped,
            on_cycle=on_cycle,
        )
        return AdaptiveRun(run, tuple(policy.picks))

    @alone()
    def draft_from(self, path: Path) -> drafters.DraftModel:
        """A draft model of your choice: another format of the target, some of its layers, another file.

        Raises PairError where its vocabulary does not fit the target's.
        """
        return self._draft_model(models.trusted(path))

    @alone()
    def under_load(
        self,
        texts: Sequence[str | Prompt],
        *,
        k: int = 3,
        alphas: Sequence[float] = (0.5, 0.8),
        look_ups: Sequence[str] = (),
        counts: Sequence[int] = (1, 2, 4, 8, 16),
        max_tokens: int = 24,
        repeats: int = 3,
    ) -> LoadSweep:
        """Speculation against plain decoding with 1, 2, 4, ... of the texts answered together (``measure.under_load``).

        alphas: drafts that cost nothing and keep this alpha, made from answers known beforehand.
        look_ups: drafters that run no model, by name. (One with a model would need a session for each text.)
        Raises ValueError for fewer texts than the largest count, or a drafter that is no look-up.
        """
        if len(texts) < max(counts):
            raise ValueError(f"{max(counts)} texts are to be answered together; there are {len(texts)}.")
        if wrong := set(look_ups) - {kind.name for kind in drafters.LOOK_UPS}:
            raise ValueError(f"{', '.join(sorted(wrong))} runs a model, and so cannot draft for several texts here.")
        prompts = [self.prompt(text) for text in texts[: max(counts)]]
        # Foretold drafts of the last cycles look past the last token that is counted.
        n_answer = max_tokens + 2 * (k + 1)
        rows = max(counts) * (k + 1)
        with BatchSession(
            self.model,
            len(prompts),
            n_ctx=max(map(len, prompts)) + n_answer,
            n_batch=max(512, rows),
            threads=self.threads,
        ) as session:
            answers = measure.plain_answers(session, prompts, max_tokens=n_answer)
            foretold = {
                messages.foretold(alpha): lambda i, alpha=alpha: drafters.Foretold(answers[i], alpha=alpha, seed=i)
                for alpha in alphas
            }
            looked_up = {name: lambda _i, name=name: self.drafter(name) for name in look_ups}
            return measure.under_load(
                session, prompts, foretold | looked_up, k=k, counts=counts, max_tokens=max_tokens, repeats=repeats
            )

    @alone()
    def digests(self, names: Sequence[str]) -> tuple[str, ...]:
        """Fingerprints of the weights of the target and of these drafters: with the same ones, labs write the same."""
        paths = {
            drafters.DraftModel.name: self._draft_path,
            drafters.LayerSkip.name: lambda: self._own_layers(LAYER_SKIP_DROPS),
            **{kind: partial(trained.path_of, kind) for kind in trained.KINDS},
        }
        members = [member for name in names for member in _in_order(name)]
        files = [self.model.path, *(paths[member]() for member in members if member in paths)]
        return tuple(models.fingerprint(path) for path in files)

    @alone()
    def draft_ms(self, name: str, text: str | Prompt, *, k: int = 4) -> float:
        """Milliseconds per drafted token, measured apart from any run; 0 for look-ups, which run no model.

        Of a chain, its model's: what a token costs at most, since those looked up are free.
        """
        if (model := _model_of(name)) is None:
            return 0.0
        return self.draft_cost(model, text, k=k).ms_per_token

    @alone()
    def drafting_ms(self, name: str, text: str | Prompt) -> float | Callable[[int, float], float]:
        """(k, alpha) -> milliseconds of a whole draft, the catching up included, measured apart; 0 for look-ups.

        Of a chain, its model's. From scripted cycles with drafts of two lengths (``ledger.drafting_ms``).
        """
        if (model := _model_of(name)) is None:
            return 0.0
        prices, context_length = self._cycle_prices(model, text)
        return partial(ledger.drafting_ms, prices, context_length=context_length)

    @alone()
    def draft_price(self, name: str, text: str | Prompt) -> DraftPrice:
        """What drafts cost a drafter between two passes of the target; nothing, for look-ups. Of a chain, its model's.

        The passes sweep the drafter's weights out of the processor's caches, and what the target kept is new to it:
        so this is more than a draft that is timed apart (``draft_cost``), and the more so the smaller the drafter is.
        """
        if (model := _model_of(name)) is None:
            return DraftPrice(name, 0.0, 0.0)
        return replace(ledger.draft_price(*self._cycle_prices(model, text)), drafter=name)

    def _cycle_prices(self, model: str, text: str | Prompt) -> tuple[ledger.Prices, int]:
        """Prices from scripted cycles with drafts of two lengths, and the context length they hold for."""
        context_length = min(len(self.prompt(text)) - 1, self.session.n_ctx - DRAFTING_ROOM)
        return ledger.Prices(self.cycle_costs(model, ks=DRAFTING_KS, contexts=(context_length,))), context_length

    @alone()
    def cycle_costs(self, name: str, *, ks: Sequence[int], contexts: Sequence[int], seed: int = 0) -> CycleCosts:
        """What the parts of a drafter's cycles cost, from scripted ones (``cycle_costs.scripted``)."""
        drafter = self.drafter(name)  # may open the session anew
        as_in_a_run = ending(Assembler(self.model.piece), self.model.is_eog)
        return cycle_costs.scripted(
            self.session, drafter, Sampler(Sampling()), ks=ks, contexts=contexts, ends_text=as_in_a_run, seed=seed
        )

    @alone()
    def draft_cost(self, name: str, text: str | Prompt, *, k: int = 4) -> DraftCost:
        """A drafter's proposals of k tokens after a prompt, timed apart. ValueError where it proposes nothing."""
        drafter, prompt = self.drafter(name), self.prompt(text)  # the drafter first: it may open the session anew
        self.session.rewind(0)
        self.session.extend(prompt[:-1], rows="none")
        return measure.draft_cost(drafter, prompt, states=self.session.states, k=k)

    @alone()
    def draft_memory(self, name: str, text: str | Prompt) -> DraftMemory:
        """What a drafter with a model holds beside the target. text: something to draft from, so that its cache fills.

        ValueError for a drafter without a model.
        """
        if name not in MODEL_DRAFTERS:
            raise ValueError(f"{name} runs no model; those that do are {', '.join(MODEL_DRAFTERS)}.")
        self.draft_cost(name, text, k=1)
        _, model, session = self._draft
        weights, per_token = model.info.weight_bytes, session.cache_bytes_per_token or 0.0
        drafter = self.drafter(name)
        if isinstance(drafter, (drafters.Eagle, drafters.Medusa)):
            weights += drafter.array_bytes
            per_token += drafter.bytes_per_token
        return DraftMemory(name, weights, per_token, session.n_ctx)

    @alone()
    def staircase(self, *, precision: float = 0.1, max_seconds: float = 10.0) -> CostCurve:
        """T(N) of this target in this format for k up to 16, coarse and quick.

        Measured once and kept, unless other programs were using the cores meanwhile.
        """
        if self.format in self._staircases:
            return self._staircases[self.format]
        curve = measure.cost_curve(
            self.session, LIVE_NS, context_length=192, precision=precision, rounds=(5, 40), max_seconds=max_seconds
        )
        if not curve.contended:
            self._staircases[self.format] = curve
        return curve

    def _open(self, format: str | None) -> None:
        self.model = Model(models.in_format(self._source, format) if format else self._source)
        self.session = self._target_session()
        self.session.probe_rollback()

    def _target_session(self, *, n_ctx: int | None = None, keep_states: bool = False) -> Session:
        n_ctx = min(n_ctx or self.n_ctx, self.model.n_ctx_train)
        return Session(self.model, n_ctx=n_ctx, threads=self.threads, keep_states=keep_states)

    def _keep_states(self) -> None:
        """From now on the target keeps its states. Not from the start: a prompt then costs an output row a token."""
        if self.session.states is None:
            before, self.session = self.session, self._target_session(keep_states=True)
            before.close()

    def _trained_drafter(self, kind: str) -> Drafter:
        """A drafter from the shipped weights. Raises PairError where the target is not the one they were trained on."""
        weights = trained.load(trained.path_of(kind))
        path = trained.assemble(weights, self._source)
        session = self._open_draft(path, self._vector_session)
        embedding = self._embedding = self._embedding or trained.embedding(self._source)
        if kind == drafters.Distilled.name:
            tokens = drafters.EmbeddedTokens(session, embedding, len(embedding))
            return drafters.Distilled(tokens, weights.vocabulary)
        self._keep_states()
        if kind == drafters.Medusa.name:
            return drafters.Medusa(session, weights.matrix("blocks.weight"), weights.vocabulary)
        if self._eagle_inputs is None:
            projection, typical = weights.matrix("projection.weight"), trained.Rows(weights.tensor("typical.weight"))
            self._eagle_inputs = drafters.EagleInputs(projection, embedding, typical, weights.vocabulary)
        return drafters.Eagle(session, self._eagle_inputs, longest_k=weights.longest_k)

    def _draft_path(self) -> Path:
        """The reader's draft; without one the distilled draft of the embedded model, for any other a layer subset."""
        if path := models.resolve_draft(self._draft_name):
            return models.trusted(path)
        if self.embedded:
            return trained.assemble_full(trained.load(trained.path_of(drafters.Distilled.name)), self._source)
        return self._own_layers(DRAFT_MODEL_DROPS)

    def _own_layers(self, n_drop: int) -> Path:
        """A subset of the target's own layers: the searched one for the embedded model, else a guess."""
        keep = self.model.n_layer - n_drop
        layers = (
            store.load_layer_search().keeping(keep).layers
            if self.embedded
            else _without_late_middle(self.model.n_layer, n_drop)
        )
        return models.layer_subset(self.model.path, layers)

    def _vector_session(self, model: Model) -> VectorSession:
        return VectorSession(model, n_ctx=self.session.n_ctx, threads=self.threads)

    def _draft_model(self, path: Path) -> drafters.DraftModel:
        return drafters.DraftModel(self._draft_session(path), n_vocab=self.model.n_vocab)

    def _draft_session(self, path: Path) -> Session:
        """The session of a draft model whose vocabulary is the target's."""

        def open_session(model: Model) -> Session:
            models.check_pair(self.model, model)
            return Session(model, n_ctx=self.session.n_ctx, threads=self.threads)

        return self._open_draft(path, open_session)

    def _open_draft(self, path: Path, open_session: Callable[[Model], _AnySession]) -> _AnySession:
        """The draft's session, opened once per file; opening another file releases the one before."""
        if self._draft is None or self._draft[0] != path:
            self._release_draft()
            model = Model(path)
            try:
                session = open_session(model)
            except Exception:
                model.close()
                raise
            self._draft = (path, model, session)
        elif self._draft[2] is None:
            self._draft = (*self._draft[:2], open_session(self._draft[1]))
        return self._draft[2]

    def _release_draft(self) -> None:
        # Forgotten first: an interrupt between the two must not leave a closed session to be drafted with.
        draft, self._draft = self._draft, None
        if draft is not None:
            _, model, session = draft
            session.close()
            self._close_draft(model)

    def _close_draft(self, model: Model) -> None:
        if model not in self._lent:
            model.close()


def _fixed(setting: Setting) -> Callable[[Drafter], Policy]:
    return lambda drafter: Fixed(drafter, setting.limits)


def _model_of(name: str) -> str | None:
    """The drafter whose model drafts: of a chain the one with a model, of others they themselves, of look-ups none."""
    return next((member for member in _in_order(name) if member in MODEL_DRAFTERS), None)


def _in_order(name: str) -> tuple[str, ...]:
    """The drafters that a name stands for, in the order asked."""
    return tuple(member for part in name.split(",") for member in (CHAIN if part == drafters.Chain.name else (part,)))


def _without_late_middle(n_layer: int, n_drop: int) -> tuple[int, ...]:
    """Drops layers from two thirds of the depth on: by and large they change the stream least. A search does better."""
    first = max(1, min(2 * n_layer // 3, n_layer - n_drop - 1))
    return tuple(i for i in range(n_layer) if not first <= i < first + n_drop)
