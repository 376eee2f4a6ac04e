"""A bench to work at: one target and at most one draft in memory, opened and released together.

What the notebooks and the live widget hold. All the measuring is ``measure``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from . import doctor, drafters, machine, measure, models
from .backend import Model, Session
from .drafters import Drafter
from .prompts import Prompt
from .records import Cycle, DraftCost, Limits, Run, Sampling

MODEL_DRAFTERS = (drafters.DraftModel.name, drafters.LayerSkip.name)


class Lab:
    """Opens a target by path, hub id, SPECNB_TARGET or (none of these) the embedded model.

    format: weight format to derive first (``models.FORMATS``); None leaves the file as it is.
    draft: a draft model for "draft_model"; None: SPECNB_DRAFT, then a layer subset of the target.
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
        self._source = _trusted(models.resolve(target))
        self._draft_name = draft
        self._draft: tuple[Path, Model, Session] | None = None
        self._open(format)

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @property
    def embedded(self) -> bool:
        """Whether the target is the model that came with the install."""
        return self._source == models.embedded()

    @property
    def format(self) -> str:
        return self.model.format

    def use_format(self, format: str) -> None:
        """Changes the target's weight format. The old weights and the draft are released before the new ones load."""
        if format != self.format:
            self.close()
            self._open(format)

    def close(self) -> None:
        self._release_draft()
        self.session.close()
        self.model.close()

    def prompt(self, text: str | Prompt) -> tuple[int, ...]:
        """Token ids of a message in the model's chat template."""
        return self.model.chat_prompt(text.text if isinstance(text, Prompt) else text)

    def drafter(self, name: str, *, n: int = 3, m: int = 8) -> Drafter:
        """A fresh drafter by name (``drafters.names()``); n and m are the n-gram drafter's pattern and copy lengths.

        Raises ValueError for an unknown name and PairError when a draft model does not fit.
        """
        if name == drafters.NoDrafter.name:
            return drafters.NoDrafter()
        if name == drafters.NgramSimple.name:
            return drafters.NgramSimple(n=n, m=m)
        if name == drafters.DraftModel.name:
            return drafters.DraftModel(self._draft_session(self._draft_path()))
        if name == drafters.LayerSkip.name:
            return drafters.LayerSkip(self._draft_session(self._own_layers()))
        raise ValueError(f"There is no drafter {name!r}; there are {', '.join(drafters.names())}.")

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
        stopped: Callable[[], bool] = lambda: False,
        on_cycle: Callable[[Cycle], None] = lambda _cycle: None,
    ) -> Run:
        """Generates once. text: a message, a Prompt, or token ids taken as they are."""
        tokens = self.prompt(text) if isinstance(text, (str, Prompt)) else tuple(text)
        return measure.run(
            self.session,
            self.drafter(drafter) if isinstance(drafter, str) else drafter,
            tokens,
            limits=Limits(k=k, n_min=n_min, p_min=p_min),
            sampling=sampling or Sampling(),
            max_tokens=max_tokens,
            prompt_kind=text.kind if isinstance(text, Prompt) else "",
            stopped=stopped,
            on_cycle=on_cycle,
        )

    def draft_cost(self, name: str, text: str | Prompt, *, k: int = 4) -> DraftCost:
        """Milliseconds per drafted token, measured apart from any run."""
        return measure.draft_cost(self.drafter(name), self.prompt(text), k=k)

    def _open(self, format: str | None) -> None:
        self.model = Model(models.in_format(self._source, format) if format else self._source)
        self.session = Session(self.model, n_ctx=min(self.n_ctx, self.model.n_ctx_train), threads=self.threads)
        self.session.probe_rollback()

    def _draft_path(self) -> Path:
        path = models.resolve_draft(self._draft_name)
        return _trusted(path) if path else self._own_layers()

    def _own_layers(self) -> Path:
        return models.layer_subset(self.model.path, models.layers_without_training(self.model))

    def _draft_session(self, path: Path) -> Session:
        """The draft's session, opened once per file; opening another file releases the one before."""
        if self._draft is None or self._draft[0] != path:
            self._release_draft()
            model = Model(path)
            try:
                models.check_pair(self.model, model)
                session = Session(model, n_ctx=self.session.n_ctx, threads=self.threads)
            except Exception:
                model.close()
                raise
            self._draft = (path, model, session)
        return self._draft[2]

    def _release_draft(self) -> None:
        if self._draft is not None:
            _, model, session = self._draft
            session.close()
            model.close()
            self._draft = None


def _trusted(path: Path) -> Path:
    """The path, after a child process has survived opening it; the embedded model needs no trial."""
    if path != models.embedded():
        doctor.require(path)
    return path
