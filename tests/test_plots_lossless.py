"""Figures of rules and rounding: what they show, what they refuse, and their words."""

from __future__ import annotations

import pytest

from specnb import plots
from specnb.records import AcceptanceByRule, Rounding

RULES = AcceptanceByRule("layer_skip", 48, (0.0, 0.5, 1.0), (0.5, 0.6, 0.7), (0.5, 0.4, 0.3), (0.5, 0.45, 0.4))
SAME = Rounding("Q4_0", 64, 37.0, ((1, 0.0, 0), (8, 0.0, 0), (64, 0.5, 64)), (0.1, 1.5, 3.0))
OTHER = Rounding("BF16", 64, 37.0, ((1, 0.0, 0), (8, 0.2, 64), (64, 0.2, 64)), (0.1, 1.4, 3.0))


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_acceptance_has_a_line_a_rule_with_its_values():
    ax = plots.plot_acceptance_by_rule(RULES, recorded="")
    drawn = [list(line.get_ydata()) for line in ax.get_lines()]
    assert [list(s) for s in (RULES.sampled_rejection, RULES.sampled_match, RULES.greedy)] == drawn
    assert len({line.get_marker() for line in ax.get_lines()}) == 3
    words = plots.describe_acceptance_by_rule(RULES)
    assert "50.0% at T=0, 60.0% at T=0.5, 70.0% at T=1" in words and "greedy draft" in words.lower()
    assert plots.png(ax)


def test_rule_counts_are_drawn_as_shares_beside_the_target():
    counts = {"right": (50, 30, 20), "wrong": (10, 80, 10)}
    ax = plots.plot_rule_counts((0.5, 0.3, 0.2), counts)
    heights = sorted(round(bar.get_height(), 6) for bar in ax.patches)
    assert heights == [0.1, 0.1, 0.2, 0.3, 0.5, 0.8]
    words = plots.describe_rule_counts((0.5, 0.3, 0.2), counts, names=("a", "b", "c"))
    assert "Target: a 50.0%" in words and "Wrong: a 10.0%, b 80.0%" in words
    for bad in ((1, 2), (0, 0, 0)):
        with pytest.raises(ValueError, match="one count for each of 3 tokens"):
            plots.plot_rule_counts((0.5, 0.3, 0.2), {"bad": bad})


def test_rounding_shows_zero_as_zero_and_each_format_apart():
    ax = plots.plot_rounding([SAME, OTHER], recorded="2026-01-01 on a machine")
    assert list(lines(ax)["Q4_0"].get_ydata()) == [0.0, 0.0, 0.5]
    assert ax.get_ylim()[0] < 0.0 < 0.5 < ax.get_ylim()[1]
    assert "0 at N=8, 0.500 at N=64" in plots.describe_rounding([SAME, OTHER])
    assert plots.png(ax)
    assert plots.png(plots.plot_rounding([Rounding("Q4_0", 8, 30.0, ((1, 0.0, 0), (2, 0.0, 0)), (1.0,))]))
    with pytest.raises(ValueError, match="nothing to plot"):
        plots.plot_rounding([])
