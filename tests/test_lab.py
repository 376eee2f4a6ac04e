from __future__ import annotations

import pytest

from specnb import drafters, machine, models, replay
from specnb.backend import ModelError
from specnb.lab import LONGEST_K, Lab
from specnb.prompts import PROMPTS
from specnb.records import PLAIN, Setting
from specnb.repetition import find_loop

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def lab(embedded):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SPECNB_TARGET", raising=False)
        patch.delenv("SPECNB_DRAFT", raising=False)
        with Lab(format="Q4_0", threads=1, n_ctx=512) as opened:
            yield opened


@pytest.mark.parametrize("name", drafters.names())
def test_every_drafter_of_the_menu_writes_the_plain_text(lab, name):
    plain = lab.run(PROMPTS["rewrite"], "none", max_tokens=24)
    run = lab.run(PROMPTS["rewrite"], name, k=4, max_tokens=24)
    assert run.drafter == name
    assert run.tokens == plain.tokens
    assert run.prompt_kind == "rewrite"


def test_one_draft_at_a_time_is_in_memory(lab):
    first = lab.drafter("draft_model").session
    assert lab.drafter("draft_model").session is first
    second = lab.drafter("layer_skip").session
    assert first.closed and not second.closed


@pytest.mark.parametrize("name", ["none", "ngram_simple", "draft_model", "distilled", "eagle", "medusa", "chain"])
def test_a_second_text_has_sessions_of_its_own_on_the_same_weights(lab, name):
    before = lab.run(PROMPTS["code"], name, k=2, max_tokens=12).tokens
    first, models_open = lab.session, lab.model
    with lab.second(name) as (session, drafter):
        assert drafter.name == name
        assert session is not lab.session and lab.model is models_open
        session.extend([1, 2, 3])
        assert lab.session.n_tokens != 3
        assert (session.states is None) == (lab.session.states is None)
        assert lab.run(PROMPTS["code"], name, k=2, max_tokens=12).tokens == before
    assert session.closed and not lab.session.closed and lab.session is first
    assert lab.run(PROMPTS["code"], name, k=2, max_tokens=12).tokens == before


def test_second_texts_keep_their_drafts_while_the_lab_opens_others(lab):
    with lab.second("eagle") as (_, head), lab.second("medusa") as (_, model):
        assert not head.session.closed and not model.session.closed
        lent = head.session.model
        assert not lent.closed
        lab.drafter("draft_model")
        assert not lent.closed and not model.session.model.closed
    assert lent.closed and model.session.model.closed
    assert lab.run("Hi.", "draft_model", max_tokens=4).emitted == 4


def test_settings_in_turns_write_the_same_text_in_sessions_that_are_closed_again(lab):
    settings = (PLAIN, Setting("ngram_simple", 3), Setting("eagle", 2), Setting("distilled", 2, 0.5))
    timed = lab.in_turns(PROMPTS["rewrite"], settings, max_tokens=24, seed=1)
    assert tuple(timed) == settings
    assert len({each.run.tokens for each in timed.values()}) == 1
    assert [each.run.drafter for each in timed.values()] == [setting.drafter for setting in settings]
    assert timed[PLAIN].run.target_passes == 24 > timed[Setting("ngram_simple", 3)].run.target_passes
    assert all(each.ms > 0 for each in timed.values())
    assert lab._lent == [] and lab.run("Hi.", "draft_model", max_tokens=4).emitted == 4


def test_a_race_against_the_adaptive_policy_gives_three_runs_and_its_choices(lab):
    costs = lab.adaptive_costs(PROMPTS["code"])
    runs, adaptive = lab.race_adaptive(PROMPTS["code"], Setting("distilled", 3), costs, max_tokens=16)
    assert [(run.drafter, run.k) for run in runs.runs] == [("none", 0), ("distilled", 3), ("adaptive", LONGEST_K)]
    assert len({run.tokens for run in runs.runs}) == 1
    assert adaptive.run is runs.runs[-1] and len(adaptive.picks) == adaptive.run.target_passes


def test_a_draft_is_priced_by_its_first_token_each_further_one_and_what_has_to_be_read(lab):
    price = lab.draft_price("eagle", PROMPTS["code"])
    assert price.drafter == "eagle" and 0 < price.further_ms and 0 <= price.catch_up_ms < price.first_ms
    assert price.ms(3, missed=2) == pytest.approx(price.first_ms + 2 * price.further_ms + 2 * price.catch_up_ms)
    assert lab.draft_price("ngram_simple", PROMPTS["code"]).ms(4, missed=9) == 0.0
    assert lab.draft_price("chain", PROMPTS["code"]).drafter == "chain"


def test_another_format_releases_the_old_target_and_draft(lab):
    old_session, old_model = lab.session, lab.model
    old_draft = lab.drafter("draft_model").session
    lab.use_format("Q8_0")
    try:
        assert lab.format == "Q8_0"
        assert old_session.closed and old_model.closed and old_draft.closed
        assert lab.run("Hi.", "draft_model", max_tokens=4).emitted == 4
    finally:
        lab.use_format("Q4_0")


def test_forty_format_changes_do_not_grow_memory(lab):
    def visit():
        for format in ("Q8_0", "Q4_0"):
            lab.use_format(format)
            lab.session.extend([1, 2, 3])

    for _ in range(5):
        visit()
    before = machine.resident_mib()
    for _ in range(20):
        visit()
    assert machine.resident_mib() - before < 60


def test_an_unknown_drafter_is_refused_by_name(lab):
    with pytest.raises(ValueError, match="no drafter 'oracle'; there are none, "):
        lab.drafter("oracle")


def test_lengths_reach_the_look_ups_and_each_has_its_own_without(lab):
    for kind in drafters.LOOK_UPS:
        made, default = lab.drafter(kind.name, n=2, m=6), lab.drafter(kind.name)
        assert (type(made), made.n, made.m) == (kind, 2, 6)
        assert (default.n, default.m) == (kind().n, kind().m)


def test_the_chain_is_look_up_and_then_the_draft_model(lab):
    look_up, model = lab.drafter("chain", n=2, m=6).drafters
    assert (look_up.name, look_up.n, look_up.m) == ("ngram_simple", 2, 6)
    assert type(model) is drafters.DraftModel


def test_drafted_tokens_cost_time_only_where_a_model_drafts(lab):
    assert lab.draft_ms("prompt_lookup", PROMPTS["rewrite"]) == lab.draft_ms("none", PROMPTS["rewrite"]) == 0.0
    assert lab.draft_ms("chain", PROMPTS["rewrite"]) > 0.0


def test_names_with_commas_are_a_chain_in_this_order_with_one_model(lab):
    chain = lab.drafter("ngram_mod,ngram_simple,eagle", n=2, m=6)
    assert [each.name for each in chain.drafters] == ["ngram_mod", "ngram_simple", "eagle"]
    assert (chain.drafters[1].n, chain.drafters[1].m) == (2, 6)
    assert lab.draft_ms("ngram_simple,eagle", PROMPTS["rewrite"]) > 0.0
    assert lab.digests(["chain"]) == lab.digests(["ngram_simple,draft_model"]) == lab.digests(["draft_model"])
    with pytest.raises(ValueError, match="draft_model, eagle all do"):
        lab.drafter("chain,eagle")
    with pytest.raises(ValueError, match="There is no drafter ' eagle'"):
        lab.drafter("ngram_simple, eagle")


@pytest.mark.parametrize("name", ["eagle", "distilled", "ngram_simple,eagle"])
@pytest.mark.parametrize(("k", "p_min"), [(1, 0.0), (3, 0.5)])
def test_a_rehearsal_on_the_model_tells_the_cycles_of_a_real_run(lab, name, k, p_min):
    rehearsal = lab.rehearse(PROMPTS["code"], name, k=4, max_tokens=40)
    run = lab.run(PROMPTS["code"], name, k=k, p_min=p_min, max_tokens=40)
    assert run.tokens == rehearsal.text
    steps = replay.of_rehearsal(rehearsal, k, p_min)
    assert [(step.drafted, step.emitted) for step in steps] == [(len(c.drafted), len(c.emitted)) for c in run.cycles]
    assert any(0 < step.drafted for step in steps) and any(step.emitted > 1 for step in steps)


@pytest.mark.parametrize("name", ["chain", "eagle"])
def test_a_longer_draft_is_dearer_and_alpha_only_adds_what_is_left_to_read(lab, name):
    drafting_ms = lab.drafting_ms(name, PROMPTS["chat"])
    assert 0 < drafting_ms(1, 0.0) < drafting_ms(8, 0.0) <= drafting_ms(8, 0.9)
    assert lab.session.n_tokens == 0


def test_look_ups_draft_without_a_price(lab):
    assert lab.drafting_ms("ngram_simple", PROMPTS["chat"]) == 0.0


def test_the_prompts_answer_without_loops(lab):
    # The n-gram drafter only makes it faster: the text is the plain one.
    for prompt in PROMPTS.values():
        assert find_loop(lab.run(prompt, "ngram_simple", k=7, max_tokens=128).tokens) is None, prompt.kind


@pytest.mark.parametrize("cores", [0.0, 1.0])
def test_the_staircase_is_measured_once_a_format_unless_contended(lab, cores, monkeypatch):
    monkeypatch.setattr(machine.CoreWatch, "busy_elsewhere", lambda _watch: cores)
    lab._staircases.clear()
    first = lab.staircase(precision=10.0, max_seconds=1.0)
    if cores:
        assert first.contended and lab.staircase(precision=10.0, max_seconds=1.0) is not first
        return
    assert lab.staircase() is first
    assert 17 in first.median_ms


def test_a_draft_from_a_file_of_choice(lab, embedded, tmp_path):
    drafter = lab.draft_from(models.in_format(embedded, "Q8_0"))
    run = lab.run(PROMPTS["code"], drafter, k=3, max_tokens=12)
    assert run.alpha_tested > 0.5 and run.drafter == "draft_model"
    with pytest.raises(ModelError, match=r"nowhere\.gguf"):
        lab.draft_from(tmp_path / "nowhere.gguf")
    assert lab.run("Hi.", drafter, k=2, max_tokens=4).emitted == 4, "a refused draft leaves the one before"
