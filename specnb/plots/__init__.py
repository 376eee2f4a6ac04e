"""Figures: ``plot_<noun>(record, *, ax=None) -> Axes`` and, beside each, its ``describe_<noun>``.

A plot function draws into ``ax`` or into a new figure; it never shows and never saves. Its
``describe_`` sibling takes the same data and returns the alt text. Together::

    plots.show(plots.plot_cost_curve(curve), plots.describe_cost_curve(curve))

``card_page`` draws a whole page of several axes and returns its figure; ``card_page_alt`` describes it.
``live_<noun>`` returns a ``LiveFigure`` whose ``update`` takes slider values and gives PNG bytes.
Colours are Okabe and Ito's; series also differ in marker, line style or hatching, and in
lightness, so that they can be told apart in grey print.
"""

from __future__ import annotations

from ..render import LiveFigure, png, show
from .adaptive import describe_adaptive, plot_adaptive
from .alpha import (
    describe_acceptance_and_alpha,
    describe_alpha_bisection,
    describe_kept_distribution,
    describe_position_acceptance,
    plot_acceptance_and_alpha,
    plot_alpha_bisection,
    plot_kept_distribution,
    plot_position_acceptance,
)
from .cards import (
    card_page,
    card_page_alt,
    describe_cards,
    describe_same_alpha,
    plot_cards,
    plot_same_alpha,
)
from .cost import (
    describe_compare_machines,
    describe_cost_curve,
    describe_formats,
    plot_compare_machines,
    plot_cost_curve,
    plot_formats,
)
from .cycles import (
    describe_cycle,
    describe_ledger,
    describe_speedup_over_k,
    plot_cycle,
    plot_ledger,
    plot_speedup_over_k,
)
from .floor import (
    describe_effective_bandwidth,
    describe_gamma_against_size,
    describe_shape_staircases,
    describe_time_shares,
    describe_two_terms,
    plot_effective_bandwidth,
    plot_gamma_against_size,
    plot_shape_staircases,
    plot_time_shares,
    plot_two_terms,
)
from .flows import describe_flows, plot_flows
from .frontier import describe_frontier, describe_layer_search, plot_frontier, plot_layer_search
from .gamma import Points, describe_speedup_over_gamma, live_speedup_over_gamma, plot_speedup_over_gamma
from .guesses import describe_guess, describe_misses, plot_guess, plot_misses
from .ledger import describe_cycle_parts, describe_ledger_errors, plot_cycle_parts, plot_ledger_errors
from .live import live_cycle, live_expected_tokens, live_speedup_over_k
from .load import (
    describe_alpha_by_temperature,
    describe_load,
    describe_load_price,
    describe_p_min,
    plot_alpha_by_temperature,
    plot_load,
    plot_load_price,
    plot_p_min,
)
from .lossless import (
    describe_acceptance_by_rule,
    describe_rounding,
    describe_rule_counts,
    plot_acceptance_by_rule,
    plot_rounding,
    plot_rule_counts,
)
from .machines import describe_machines, live_machines, plot_machines
from .race import describe_race, plot_race
from .runs import describe_run_timeline, plot_run_timeline
from .stepping import describe_step, live_step, plot_step, step_title, tell_step
from .sweep import describe_drafters_by_kind, describe_sweep, plot_drafters_by_kind, plot_sweep

__all__ = [
    "LiveFigure",
    "Points",
    "card_page",
    "card_page_alt",
    "describe_acceptance_and_alpha",
    "describe_acceptance_by_rule",
    "describe_adaptive",
    "describe_alpha_bisection",
    "describe_alpha_by_temperature",
    "describe_cards",
    "describe_compare_machines",
    "describe_cost_curve",
    "describe_cycle",
    "describe_cycle_parts",
    "describe_drafters_by_kind",
    "describe_effective_bandwidth",
    "describe_flows",
    "describe_formats",
    "describe_frontier",
    "describe_gamma_against_size",
    "describe_guess",
    "describe_kept_distribution",
    "describe_layer_search",
    "describe_ledger",
    "describe_ledger_errors",
    "describe_load",
    "describe_load_price",
    "describe_machines",
    "describe_misses",
    "describe_p_min",
    "describe_position_acceptance",
    "describe_race",
    "describe_rounding",
    "describe_rule_counts",
    "describe_run_timeline",
    "describe_same_alpha",
    "describe_shape_staircases",
    "describe_speedup_over_gamma",
    "describe_speedup_over_k",
    "describe_step",
    "describe_sweep",
    "describe_time_shares",
    "describe_two_terms",
    "live_cycle",
    "live_expected_tokens",
    "live_machines",
    "live_speedup_over_gamma",
    "live_speedup_over_k",
    "live_step",
    "plot_acceptance_and_alpha",
    "plot_acceptance_by_rule",
    "plot_adaptive",
    "plot_alpha_bisection",
    "plot_alpha_by_temperature",
    "plot_cards",
    "plot_compare_machines",
    "plot_cost_curve",
    "plot_cycle",
    "plot_cycle_parts",
    "plot_drafters_by_kind",
    "plot_effective_bandwidth",
    "plot_flows",
    "plot_formats",
    "plot_frontier",
    "plot_gamma_against_size",
    "plot_guess",
    "plot_kept_distribution",
    "plot_layer_search",
    "plot_ledger",
    "plot_ledger_errors",
    "plot_load",
    "plot_load_price",
    "plot_machines",
    "plot_misses",
    "plot_p_min",
    "plot_position_acceptance",
    "plot_race",
    "plot_rounding",
    "plot_rule_counts",
    "plot_run_timeline",
    "plot_same_alpha",
    "plot_shape_staircases",
    "plot_speedup_over_gamma",
    "plot_speedup_over_k",
    "plot_step",
    "plot_sweep",
    "plot_time_shares",
    "plot_two_terms",
    "png",
    "show",
    "step_title",
    "tell_step",
]
