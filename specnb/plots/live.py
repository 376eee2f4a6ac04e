"""Figures for sliders: axes drawn once, data moved in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.patches import Rectangle

from .. import messages
from ..render import LiveFigure, exclusive
from .alpha import ALPHAS, ExpectedTokens
from .cycles import _draw_measured, _speedup_frame
from .style import BLUE, GREY, ORANGE, SKY, VERMILLION, Ends, axes_of, head, label_of, legend_below


@exclusive
def live_speedup_over_k(
    ks: Sequence[int],
    *,
    top: float = 3.0,
    measured: Sequence[tuple[int, float, Ends]] = (),
    recorded: str | None = None,
) -> LiveFigure:
    """Speedup over k for sliders: ``update(predicted=..., k=...)``.

    ks: draft lengths on the axis. top: the highest speedup that fits. update's predicted: k ->
    speedup, as many of ks as can be predicted; k: the one to name.
    """
    ax = axes_of(None, height_in=4.0, bottom_in=1.0)
    _draw_measured(ax, measured)
    _speedup_frame(ax, ks, top)
    (points,) = ax.plot([], [], "o", color=BLUE, markersize=6, label=messages.PREDICTED)
    (line,) = ax.plot([], [], color=BLUE, linewidth=1.2)
    (chosen,) = ax.plot([], [], "o", markersize=13, markerfacecolor="none", markeredgecolor=VERMILLION, mew=2)
    readout = ax.text(0.99, 0.97, "", transform=ax.transAxes, ha="right", va="top", weight="bold", size=12)
    head(ax, messages.SPEEDUP_TITLE, label_of(recorded))
    legend_below(ax, 3)

    def move(*, predicted: Mapping[int, float], k: int) -> None:
        shown = sorted(predicted)
        points.set_data(shown, [predicted[x] for x in shown])
        # NaN breaks the line wherever a draft length in between has no prediction.
        span = range(shown[0], shown[-1] + 1) if shown else ()
        line.set_data(list(span), [predicted.get(x, np.nan) for x in span])
        known = k in predicted
        chosen.set_data([k] if known else [], [predicted[k]] if known else [])
        readout.set_text(messages.live_speedup(k, predicted[k]) if known else messages.live_speedup_unmeasured(k))

    return LiveFigure(ax, [line, points, chosen, readout], move)


@exclusive
def live_cycle(most_ms: float, *, most_k: int = 16, recorded: str | None = None) -> LiveFigure:
    """One cycle against plain decoding: ``update(k=, draft_ms=, verify_ms=, other_ms=, tokens=, plain_ms=)``.

    most_ms: the longest bar that fits; most_k: the longest draft. draft_ms: per drafted token;
    tokens: emitted per cycle; plain_ms: per plain token.
    """
    ax = axes_of(None, height_in=3.0, left_in=1.35, bottom_in=1.0)
    seam = {"edgecolor": "white", "linewidth": 1.2}
    colours, hatches = (ORANGE, BLUE, GREY, SKY), (None, None, "////", "..")
    labels = (messages.CYCLE_DRAFT, messages.CYCLE_VERIFY, messages.CYCLE_OTHER, messages.CYCLE_PLAIN)
    for colour, hatch, label in zip(colours, hatches, labels, strict=True):
        ax.bar(0, 0, color=colour, hatch=hatch, label=label, **seam)
    drafts = [ax.add_patch(Rectangle((0, -0.31), 0, 0.62, facecolor=ORANGE, **seam)) for _ in range(most_k)]
    verify = ax.add_patch(Rectangle((0, -0.31), 0, 0.62, facecolor=BLUE, **seam))
    other = ax.add_patch(Rectangle((0, -0.31), 0, 0.62, facecolor=GREY, hatch="////", **seam))
    plains = [ax.add_patch(Rectangle((0, 0.69), 0, 0.62, facecolor=SKY, hatch="..", **seam)) for _ in range(most_k + 1)]
    totals = [ax.text(0, y, "", va="center", weight="bold") for y in (0, 1)]
    ax.set_xlim(0, 1.14 * most_ms)
    ax.set_ylim(1.5, -0.5)
    ax.set_yticks([0, 1], [messages.CYCLE_ROW, messages.CYCLE_PLAIN_ROW])
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.set_xlabel(messages.CYCLE_AXIS)
    head(ax, messages.CYCLE_TITLE, label_of(recorded))
    legend_below(ax, 4)

    def move(*, k: int, draft_ms: float, verify_ms: float, other_ms: float, tokens: float, plain_ms: float) -> None:
        for i, patch in enumerate(drafts):
            _span(patch, i * draft_ms, draft_ms if i < k else 0.0)
        _span(verify, k * draft_ms, verify_ms)
        _span(other, k * draft_ms + verify_ms, other_ms)
        for i, patch in enumerate(plains):
            _span(patch, i * plain_ms, plain_ms * min(1.0, max(0.0, tokens - i)))
        ends = (k * draft_ms + verify_ms + other_ms, tokens * plain_ms)
        for text, end in zip(totals, ends, strict=True):
            text.set_x(min(end, most_ms) + 0.01 * most_ms)
            text.set_text(messages.cycle_total(end))

    return LiveFigure(ax, [*drafts, verify, other, *plains, *totals], move)


def _span(patch: Rectangle, left: float, width: float) -> None:
    patch.set_x(left)
    patch.set_width(width)
    patch.set_visible(width > 0)


@exclusive
def live_expected_tokens(expected_tokens: ExpectedTokens, *, most_k: int = 16) -> LiveFigure:
    """E[tokens] over alpha for a draft length: ``update(alpha=, k=)``.

    expected_tokens: ``theory.expected_tokens``.
    """
    ax = axes_of(None, height_in=4.0)
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(0, 1.04 * (most_k + 1))
    ax.set_xlabel(messages.ALPHA_AXIS)
    ax.set_ylabel(messages.TOKENS_AXIS)
    (line,) = ax.plot([], [], color=BLUE, linewidth=2)
    (point,) = ax.plot([], [], "o", color=VERMILLION, markeredgecolor="black", markersize=9)
    (guide,) = ax.plot([], [], color=VERMILLION, linewidth=1.2, linestyle="--")
    readout = ax.text(0.02, 0.96, "", transform=ax.transAxes, va="top", weight="bold", size=12)
    name = ax.text(0.02, 0.87, "", transform=ax.transAxes, va="top", color=BLUE)
    head(ax, messages.LIVE_TOKENS_TITLE, None)

    def move(*, alpha: float, k: int) -> None:
        tokens = float(expected_tokens(np.array([alpha]), k)[0])
        line.set_data(ALPHAS, expected_tokens(ALPHAS, k))
        point.set_data([alpha], [tokens])
        guide.set_data([alpha, alpha, 0.0], [0.0, tokens, tokens])
        readout.set_text(messages.live_tokens(alpha, tokens))
        name.set_text(messages.expected_tokens_curve(k))

    return LiveFigure(ax, [line, guide, point, readout, name], move)
