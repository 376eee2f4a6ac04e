"""Advice from points: when it says on, off, or that nothing can be told; and numbers that cannot be."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest
import toy_lab

from specnb import advise, messages, sweep
from specnb.records import PLAIN, Advice, Choice, CostCurve, DraftPrice, Machine, Setting, SweepCosts, Trial

LOOK_UP, EAGLE = Setting("ngram_simple", 6), Setting("eagle", 2, 0.5)
MACHINE = Machine("a machine")


def around(ms: float, spread: float = 0.005) -> list[float]:
    return [ms * (1 + spread * i) for i in (-1, 0, 1, 0.5)]


def costs(*samples: tuple[int, float], **prices: float) -> SweepCosts:
    curve = CostCurve("here", samples, context_length=0, threads=2, machine=MACHINE)
    return SweepCosts(curve, tuple(DraftPrice(name, ms, ms) for name, ms in prices.items()))


@pytest.mark.parametrize(
    ("ms", "spread", "verdict"),
    [(6.0, 0.005, "on"), (14.0, 0.005, "off"), (10.02, 0.01, "unclear"), (9.0, 0.3, "unclear"), (11.0, 0.3, "unclear")],
)
def test_the_verdict_is_where_the_whole_interval_lies(ms, spread, verdict):
    choice = advise.choose("code", {PLAIN: around(10.0, spread), LOOK_UP: around(ms, spread)})
    assert choice.verdict == verdict and choice.setting == LOOK_UP
    assert choice.speedup == pytest.approx(10.0 / ms, rel=0.02)
    low, high = choice.interval
    assert low <= choice.speedup <= high
    assert choice.advised == (LOOK_UP if verdict == "on" else PLAIN)


def test_noise_widens_the_interval():
    narrow, wide = (
        advise.choose("code", {PLAIN: around(10.0, spread), LOOK_UP: around(8.0, spread)}).interval
        for spread in (0.005, 0.1)
    )
    assert wide[1] - wide[0] > 5 * (narrow[1] - narrow[0])


def test_settings_within_the_noise_of_the_fastest_are_ties_and_none_is_the_winner():
    times = {PLAIN: around(10.0), LOOK_UP: around(6.0), EAGLE: around(6.01), Setting("medusa", 2): around(7.0)}
    choice = advise.choose("code", times)
    assert choice.setting == LOOK_UP and choice.ties == (EAGLE,)
    told = " ".join(messages.advice_reasons(found(choice)))
    assert "not distinguishable from eagle with k = 2 and p_min = 0.5: take either." in told


def test_which_of_several_to_take_is_told_only_where_one_is_to_be_taken():
    others = (EAGLE, Setting("medusa", 2))
    on, off = (Choice("code", verdict, LOOK_UP, 1.5, ties=others) for verdict in ("on", "off"))
    (told,) = messages.advice_reasons(found(on))
    assert told.endswith("from eagle with k = 2 and p_min = 0.5 or medusa with k = 2: take any of them.")
    assert messages.advice_reasons(found(off)) == ()


def test_not_distinguishable_says_from_what():
    assert "| code | off (not distinguishable from plain decoding) |" in messages.advice_table(
        found(choice("code", "unclear"))
    )


@pytest.mark.parametrize(("speedup", "small"), [(1.03, True), (1.049, True), (1.05, False), (1.5, False)])
def test_a_small_gain_of_one_prompt_is_called_so(speedup, small):
    narrow = Choice("code", "on", LOOK_UP, speedup, (speedup - 0.01, speedup + 0.01))
    advice = replace(found(narrow, choice("chat", "off")), overall=replace(narrow, kind=""))
    table, answer = messages.advice_table(advice), messages.advice_answer(advice)
    assert ("| code | **on** (one prompt, a small gain) |" in table) == small
    assert ("| all kinds, one setting | **on** (a small gain) |" in table) == small
    assert answer.endswith("off for chat. A small gain, from one prompt only: code.") == small


def test_a_small_difference_that_is_no_gain_is_not_called_one():
    told = messages.advice(found(choice("chat", "off", speedup=0.98), choice("code", "unclear", speedup=1.02)))
    assert "small gain" not in told


def test_two_repeats_have_no_interval_and_decide_nothing():
    choice = advise.choose("code", {PLAIN: [10.0, 10.1], LOOK_UP: [5.0, 5.1]})
    assert (choice.interval, choice.verdict) == (None, "unclear")
    assert "too few repeats" in messages.advice_table(found(choice))


def test_a_setting_seen_once_does_not_beat_one_that_was_repeated():
    assert advise.choose("code", {PLAIN: around(10.0), LOOK_UP: around(6.0), EAGLE: [5.0]}).setting == LOOK_UP


def test_without_plain_decoding_there_is_nothing_to_compare_with():
    with pytest.raises(ValueError, match="Plain decoding was not measured on 'code'"):
        advise.choose("code", {LOOK_UP: around(6.0)})


def test_plain_decoding_alone_is_left_as_it_is():
    assert advise.choose("code", {PLAIN: around(10.0)}) == Choice("code", "off", None, None)


def test_no_alpha_can_rescue_a_k_whose_cycle_costs_more_than_as_many_plain_tokens():
    # k = 1: (6 + 15) / 2 = 10.5 ms a token at best; k = 3: (18 + 16) / 4 = 8.5, against 10 plain.
    here = costs((1, 10.0), (2, 15.0), (4, 16.0), draft_model=6.0)
    tried = (PLAIN, Setting("draft_model", 1), Setting("draft_model", 1, 0.5), Setting("draft_model", 3), LOOK_UP)
    (none,) = advise.hopeless(here, tried[:-1])
    assert (none.drafter, none.k, none.plain_ms) == ("draft_model", 1, 10.0)
    assert none.ms_per_token_at_best == pytest.approx(10.5)
    told = messages.advice_reasons(replace(found(), hopeless=(none,)))
    assert told == (
        "No alpha can rescue draft_model at k = 1: even if every token were kept, one would cost 10.5 ms (at k = 1), "
        "and a plain one costs 10.0 ms.",
    )


def test_a_curve_without_one_is_refused_with_what_it_has():
    with pytest.raises(ValueError, match=r"lacks it \(measured: N=2, 4\). Measure N=1"):
        advise.hopeless(costs((2, 15.0), (4, 16.0)), (LOOK_UP,))
    with pytest.raises(KeyError, match="N=7"):
        advise.hopeless(costs((1, 10.0), (2, 15.0)), (LOOK_UP,))


TRIAL = Trial("eagle", 2, 0.5, "code", "final", 0, emitted=20, passes=10, drafted=18, kept=10, seconds=0.5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seconds": nan}, "took nan s"),
        ({"seconds": inf}, "took inf s"),
        ({"seconds": -0.5}, "took -0.5 s"),
        ({"seconds": 0.0}, "took 0.0 s"),
        ({"kept": 19}, "kept 19 of 18 drafted tokens: acceptance is at most 1"),
        ({"kept": -1}, "kept -1 of 18"),
        ({"emitted": 31}, r"31 tokens in 10 passes: tokens per cycle lie between 1 and k \+ 1 = 3"),
        ({"emitted": 9}, "9 tokens in 10 passes"),
        ({"passes": 0, "emitted": 0}, "0 tokens in 0 passes"),
    ],
)
def test_a_point_that_cannot_be_is_refused_with_its_number(change, said):
    with pytest.raises(ValueError, match=said):
        replace(TRIAL, **change)


@pytest.mark.parametrize("ms", [nan, -1.0, inf])
def test_a_price_or_pass_that_cannot_be_is_refused_with_its_number(ms):
    with pytest.raises(ValueError, match=f"not {ms} ms"):
        DraftPrice("eagle", ms, 1.0)
    with pytest.raises(ValueError, match=f"N=2, {ms} ms"):
        costs((1, 10.0), (2, ms))


def found(*choices: Choice):
    return Advice(MACHINE, "a model", choices, None)


def choice(kind: str, verdict: str, setting: Setting = LOOK_UP, speedup: float = 1.5) -> Choice:
    return Choice(kind, verdict, setting, speedup, (speedup - 0.1, speedup + 0.1))


@pytest.mark.parametrize(
    ("choices", "answer"),
    [
        (
            [choice("rewrite", "on", speedup=2.4), choice("chat", "off", EAGLE, 0.8)],
            "Yes: ngram_simple with k = 6 makes rewrite 2.40× as fast here; leave it off for chat.",
        ),
        (
            [choice("rewrite", "on"), choice("code", "on", EAGLE, 1.2), choice("extract", "on", speedup=1.6)],
            "Yes: ngram_simple with k = 6 makes rewrite 1.50× and extract 1.60× as fast and eagle with k = 2 and "
            "p_min = 0.5 makes code 1.20× as fast here.",
        ),
        (
            [choice("rewrite", "on"), choice("chat", "unclear")],
            "Yes: ngram_simple with k = 6 makes rewrite 1.50× as fast here. Not distinguishable from plain decoding: "
            "chat. Leave it off there, too.",
        ),
        ([choice("chat", "off")], "No: leave it off. Nothing that was tried is faster than plain decoding here."),
        (
            [choice("chat", "unclear"), choice("code", "off")],
            "No gain can be shown here: leave it off. On chat the difference is not distinguishable from none; on code "
            "speculation is slower.",
        ),
    ],
)
def test_the_answer_comes_first_in_plain_sentences(choices, answer):
    assert messages.advice_answer(found(*choices)) == answer
    assert messages.advice(found(*choices)).startswith(f"**{answer}**")


def test_a_gain_that_shows_only_over_all_kinds_is_told():
    overall = Choice("", "on", LOOK_UP, 1.15, (1.05, 1.25))
    told = messages.advice_answer(replace(found(choice("chat", "unclear")), overall=overall))
    assert told.endswith("Only over all kinds together ngram_simple with k = 6 gains: 1.15×.")


def test_loops_disturbances_and_an_early_end_are_told():
    told = messages.advice_reasons(
        replace(found(replace(choice("story", "on"), looped=True, contended=True)), rerun=(TRIAL,), complete=False)
    )
    assert len(told) == 4
    assert "repeats itself" in told[0] and "story" in told[0]
    assert "eagle with k = 2 and p_min = 0.5 on code" in told[1]
    assert "close them and sweep again" in told[2] and "stopped early" in told[3]


def test_one_setting_for_all_kinds_is_judged_by_equally_many_tokens_of_each(monkeypatch):
    toy_lab.quiet(monkeypatch)
    swept = sweep.Sweeper(toy_lab.ToyLab(), toy_lab.PLAN).run()
    overall = advise.advise(swept).overall
    ms = {s: sum(swept.of(s, kind)[0].ms_per_token for kind in swept.kinds) for s in (PLAIN, overall.setting)}
    assert overall.speedup == pytest.approx(ms[PLAIN] / ms[overall.setting])
    assert overall.verdict == "on"


def test_what_is_not_known_yet_is_left_out(monkeypatch):
    toy_lab.quiet(monkeypatch)
    swept = sweep.Sweeper(toy_lab.ToyLab(), toy_lab.PLAN).run()
    only = replace(swept, trials=tuple(t for t in swept.trials if t.kind == "copy"), complete=False)
    advice = advise.advise(only)
    assert [each.kind for each in advice.by_kind] == ["copy"]
    none = advise.advise(replace(swept, trials=()))
    assert none.by_kind == () and none.overall is None


def test_settings_measured_in_turns_are_compared_as_pairs():
    """A machine that is twice as slow in every other round: the pairs agree, the medians tell nothing."""
    rounds = (1.0, 2.0, 1.1, 2.1, 1.5)
    times = {PLAIN: [10.0 * slow for slow in rounds], LOOK_UP: [9.5 * slow for slow in rounds]}
    paired, apart = advise.choose("code", times, in_turns=True), advise.choose("code", times)
    assert (paired.verdict, apart.verdict) == ("on", "unclear")
    assert paired.interval == pytest.approx((10 / 9.5, 10 / 9.5))


def test_the_final_rounds_of_a_race_are_such_pairs(monkeypatch):
    toy_lab.quiet(monkeypatch)
    found = sweep.Sweeper(toy_lab.ToyLab(), toy_lab.PLAN).run()
    slowed = replace(
        found, trials=tuple(replace(trial, seconds=trial.seconds * (1 + trial.repeat % 2)) for trial in found.trials)
    )
    for calm, slow in zip(advise.advise(found).by_kind, advise.advise(slowed).by_kind, strict=True):
        assert (slow.setting, slow.verdict, slow.ties) == (calm.setting, calm.verdict, calm.ties)
        assert slow.interval == pytest.approx(calm.interval)


def test_what_was_only_screened_does_not_spoil_the_pairs_of_the_finals_over_all_kinds(monkeypatch):
    """A machine that is twice as slow in every other round, and a setting that every kind tried once and dropped."""
    toy_lab.quiet(monkeypatch)
    found = sweep.Sweeper(toy_lab.ToyLab(), toy_lab.PLAN).run()
    dropped = Setting("layer_skip", 6)
    tried = [replace(found.of(PLAIN, kind)[0], drafter=dropped.drafter, k=dropped.k) for kind in found.kinds]
    slowed = [replace(trial, seconds=trial.seconds * (1 + trial.repeat % 2)) for trial in found.trials]
    finals = replace(found, trials=tuple(slowed))
    assert dropped in found.settings and not any(found.of(dropped, kind) for kind in found.kinds)
    also = replace(found, trials=(*slowed, *(replace(trial, stage="screen") for trial in tried)))
    assert advise.advise(also).overall == advise.advise(finals).overall
    assert advise.advise(also).overall.verdict == "on"
