"""What decides whether a text stays the same: rules of acceptance, their distributions, and rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from .. import messages
from ..records import AcceptanceByRule, Rounding
from ..render import exclusive, legible
from .style import GREY, MUTED_TEXT, SMALL, axes_of, head, label_of, legend_below, looks


@exclusive
def plot_acceptance_by_rule(found: AcceptanceByRule, *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """Chance that a drafted token is kept against temperature, a line for each rule and way of drafting."""
    ax = axes_of(ax, height_in=4.5, bottom_in=1.5)
    for (label, shares), look in zip(_acceptance_lines(found).items(), looks(3), strict=True):
        ax.plot(found.temperatures, shares, look.marker, color=look.colour, linestyle=look.line, label=label)
    ax.set_ylim(0, 1)
    ax.set_xlabel(messages.RULE_TEMPERATURE_AXIS)
    ax.set_ylabel(messages.RECORDED_ALPHA_AXIS)
    head(ax, messages.ACCEPTANCE_BY_RULE_TITLE, label_of(recorded))
    legend_below(ax, 1)
    return ax


def describe_acceptance_by_rule(found: AcceptanceByRule) -> str:
    """Alt text for ``plot_acceptance_by_rule``."""
    return messages.acceptance_by_rule_alt(found.temperatures, _acceptance_lines(found))


def _acceptance_lines(found: AcceptanceByRule) -> dict[str, Sequence[float]]:
    return {
        messages.SAMPLED_REJECTION: found.sampled_rejection,
        messages.SAMPLED_MATCH: found.sampled_match,
        messages.GREEDY_EITHER: found.greedy,
    }


@exclusive
def plot_rule_counts(
    probabilities: Sequence[float],
    counts: Mapping[str, Sequence[int]],
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Share of each token among those that a rule emitted, beside the target's probability.

    counts: rule -> count of each token. names: of the tokens; their numbers unless given. ValueError
    where a rule has no counts, or not as many as there are probabilities.
    """
    for rule, of_rule in counts.items():
        if len(of_rule) != len(probabilities) or not sum(of_rule):
            raise ValueError(messages.wrong_counts(rule, len(of_rule), len(probabilities)))
    ax = axes_of(ax, height_in=4.0, bottom_in=1.2)
    places = np.arange(len(probabilities))
    width = 0.8 / len(counts)
    for i, ((rule, of_rule), look) in enumerate(zip(counts.items(), looks(len(counts)), strict=True)):
        at = places + (i - (len(counts) - 1) / 2) * width
        hatch = ("", "//", "..", "xx")[i % 4]
        shares = np.asarray(of_rule) / sum(of_rule)
        ax.bar(at, shares, 0.9 * width, color=look.colour, hatch=hatch, edgecolor="white", label=legible(rule))
    ax.hlines(
        probabilities, places - 0.46, places + 0.46, color="black", linewidth=1.8, label=messages.RULE_TARGET, zorder=4
    )
    ax.set_xticks(places, [legible(name) for name in names or map(str, places)])
    ax.set_ylabel(messages.RULE_SHARE_AXIS)
    ax.set_xlabel(messages.RULE_TOKEN_AXIS)
    head(ax, messages.RULE_TITLE, "")
    legend_below(ax, 2)
    return ax


def describe_rule_counts(
    probabilities: Sequence[float], counts: Mapping[str, Sequence[int]], *, names: Sequence[str] | None = None
) -> str:
    """Alt text for ``plot_rule_counts``."""
    told = names or [str(i) for i in range(len(probabilities))]
    return messages.rule_counts_alt(dict(zip(told, probabilities, strict=True)), counts)


@exclusive
def plot_rounding(found: Sequence[Rounding], *, recorded: str | None = None, ax: Axes | None = None) -> Axes:
    """Largest change of a logit against N, a line for each format; 0, the same bits, has a place of its own.

    The grey line is the median gap between the two best logits of the first one: a change of half
    of it could turn that choice. ValueError without any.
    """
    if not found:
        raise ValueError(messages.no_rows("found"))
    ax = axes_of(ax, height_in=4.2, bottom_in=1.2)
    ns = sorted({n for each in found for n in each.change_by_n})
    smallest = min((c for each in found for c in each.change_by_n.values() if c > 0), default=1e-3)
    ax.set_yscale("symlog", linthresh=smallest / 2)
    for each, look in zip(found, looks(len(found)), strict=False):
        by_n = each.change_by_n
        ax.plot(list(by_n), list(by_n.values()), look.marker, color=look.colour, linestyle=look.line, label=each.label)
    gap = float(np.median(found[0].gaps))
    ax.axhline(gap, color=GREY, linewidth=1.2)
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.annotate(
        messages.MEDIAN_GAP,
        (ns[0], gap),
        (0, 6),
        textcoords="offset points",
        fontsize=SMALL,
        color=MUTED_TEXT,
        bbox=behind,
    )
    ax.set_ylim(-smallest / 6, 3 * max(gap, *(max(each.change_by_n.values()) for each in found)))
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(ns))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.set_xlabel(messages.ROUNDING_N_AXIS)
    ax.set_ylabel(messages.ROUNDING_AXIS)
    head(ax, messages.ROUNDING_TITLE, label_of(recorded))
    legend_below(ax, 4)
    return ax


def describe_rounding(found: Sequence[Rounding]) -> str:
    """Alt text for ``plot_rounding``."""
    return messages.rounding_alt({each.label: each.change_by_n for each in found})
