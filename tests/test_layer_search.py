"""Leaving layers out: what is cut is what was meant, and the search finds layers that do nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import pytest
import tiny_models

from specnb import layer_search, models, prompts, store
from specnb.backend import Model, ModelError, Session
from specnb.records import LayerSearch, LayerSet

ROOT = Path(__file__).resolve().parent.parent
TEXT = (72, 105, 33, 200, 10, 256, 3, 72)

architectures = pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder for derived models."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPECNB_CACHE", str(folder))
    return folder


@pytest.fixture
def short(monkeypatch) -> None:
    """Less calibration text: enough to tell layers apart."""
    monkeypatch.setattr(layer_search, "CALIBRATION", layer_search.CALIBRATION[:2])
    monkeypatch.setattr(layer_search, "ANSWER_TOKENS", 24)


def logits(path: Path) -> np.ndarray:
    """Of a fixed text, shape (tokens, n_vocab)."""
    with Model(path) as model, Session(model, n_ctx=64, threads=1) as session:
        session.extend(TEXT)
        return np.array([session.logits(row).copy() for row in range(len(TEXT))])


# -- what is cut is what was meant -----------------------------------------------------------------


@architectures
def test_all_layers_give_the_same_logits_as_their_source(tmp_path, architecture):
    source = tiny_models.write(tmp_path / "source.gguf", architecture, layers=range(4))
    expected = logits(source)
    assert np.isfinite(expected).all() and expected.std() > 0.1
    assert (logits(models.layer_subset(source, range(4))) == expected).all()


@architectures
@pytest.mark.parametrize("keep", [(0, 1, 3, 4), (0, 1, 2), (1, 4)])
def test_fewer_layers_give_the_logits_of_a_model_written_without_the_others(tmp_path, architecture, keep):
    source = tiny_models.write(tmp_path / "source.gguf", architecture, layers=range(5))
    by_hand = tiny_models.write(tmp_path / "by_hand.gguf", architecture, layers=keep)
    subset = models.layer_subset(source, keep)
    assert (logits(subset) == logits(by_hand)).all()
    assert not np.allclose(logits(subset), logits(source), atol=0.1)
    with Model(subset) as model, Model(source) as whole:
        assert model.n_layer == len(keep) and model.architecture == architecture
        models.check_pair(whole, model)


def test_biases_of_queries_keys_and_values_come_along(tmp_path):
    source = tiny_models.write(tmp_path / "source.gguf", "qwen2", layers=range(3))
    tensors = {tensor.name: tensor.data for tensor in models.read_gguf(models.layer_subset(source, (0, 2))).tensors}
    whole = {tensor.name: tensor.data for tensor in models.read_gguf(source).tensors}
    for each in "qkv":
        assert (tensors[f"blk.1.attn_{each}.bias"] == whole[f"blk.2.attn_{each}.bias"]).all()


# -- the search, of a model ------------------------------------------------------------------------


@architectures
def test_a_search_drops_layers_one_by_one_and_twice_the_same(tmp_path, cache, short, architecture):
    source = tiny_models.write(tmp_path / "source.gguf", architecture, layers=range(5))
    found = layer_search.search(source, n_drop=3, threads=1)
    assert found.model == "source.gguf"
    assert [len(one.layers) for one in found.sets] == [4, 3, 2]
    assert all(set(fewer.layers) < set(more.layers) for more, fewer in pairwise(found.sets))
    assert [one.layers for one in found.early_exits] == [(0, 1, 2, 3), (0, 1, 2)]
    everything = (*found.sets, *found.early_exits)
    assert all(one.layers[0] == 0 and 0 <= one.agreement <= 1 for one in everything)
    assert 0 < found.sets[0].agreement < 1
    (positions,) = {one.positions for one in everything}
    assert 0 < positions <= 2 * 24
    # Among what the search tried were the early exits with as many layers.
    assert found.sets[0].agreement >= found.early_exits[0].agreement
    assert layer_search.search(source, n_drop=3, threads=1) == found
    assert not [path for path in cache.rglob("*") if path.is_file()]


@architectures
def test_idle_layers_are_found_and_cost_nothing(tmp_path, short, architecture):
    source = tiny_models.write(tmp_path / "source.gguf", architecture, layers=range(5), idle=(1, 3))
    found = layer_search.search(source, n_drop=3, threads=1)
    assert found.keeping(4).layers == (0, 2, 3, 4) and found.keeping(4).agreement == 1
    assert found.keeping(3).layers == (0, 2, 4) and found.keeping(3).agreement == 1
    assert found.keeping(2).agreement < 1


def test_an_early_exit_above_idle_layers_agrees_fully(tmp_path, short):
    source = tiny_models.write(tmp_path / "source.gguf", "llama", layers=range(6), idle=(5,))
    found = layer_search.search(source, n_drop=0, threads=1)
    assert [(len(one.layers), one.agreement == 1) for one in found.early_exits] == [(5, True), (4, False)]
    assert found.sets == ()


def test_calibration_texts_are_prompts_with_their_own_greedy_answers(tmp_path, short):
    with Model(tiny_models.write(tmp_path / "source.gguf", "llama")) as model:
        texts = layer_search.calibration_texts(model, threads=1)
        chosen = layer_search.choices(model, texts, threads=1)
        assert [text.tokens[: text.n_prompt] for text in texts] == [
            model.chat_prompt(question) for question in layer_search.CALIBRATION
        ]
    answers = [token for text in texts for token in text.tokens[text.n_prompt :]]
    assert 0 < len(answers) <= 2 * 24 and chosen.tolist() == answers


def test_no_notebook_and_no_judge_of_drafters_asks_what_calibrates():
    asked = {prompt.text for prompt in (*prompts.PROMPTS.values(), *prompts.HELD_OUT)}
    assert asked.isdisjoint(layer_search.CALIBRATION)


# -- ending early, and going on --------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch) -> Callable[[], int]:
    """How often the search has looked at its clock, which is one second later each time."""
    looks = [0]

    def look() -> int:
        looks[0] += 1
        return looks[0]

    monkeypatch.setattr(layer_search, "perf_counter", look)
    return lambda: looks[0]


def test_answers_are_cut_short_when_the_time_is_up(tmp_path, short):
    with Model(tiny_models.write(tmp_path / "source.gguf", "llama")) as model:
        texts = layer_search.calibration_texts(model, threads=1, stopped=lambda: True)
    assert [len(text.tokens) for text in texts] == [text.n_prompt for text in texts]


def test_no_time_gives_an_empty_search(tmp_path, short, monkeypatch):
    source = tiny_models.write(tmp_path / "source.gguf", "llama")
    monkeypatch.setattr(layer_search, "choices", lambda *_, **__: pytest.fail("judged answers that were cut short"))
    found = layer_search.search(source, max_seconds=0, threads=1)
    assert (found.model, found.sets, found.early_exits) == ("source.gguf", (), ())
    with pytest.raises(KeyError, match="there are none"):
        found.keeping(4)


@pytest.mark.parametrize(("steps_done", "looks_more"), [(1, 1), (2, 1), (2, 4), (3, 1), (3, 3)])
def test_when_the_time_is_up_the_complete_sets_are_the_result(tmp_path, short, clock, steps_done, looks_more):
    """Of five layers there are two early exits; then four candidates for the first set, and three for the next."""
    source = tiny_models.write(tmp_path / "source.gguf", "llama", layers=range(5))
    steps: list[tuple[LayerSearch, int]] = []
    layer_search.search(source, n_drop=3, threads=1, on_found=lambda found: steps.append((found, clock())))
    expected, seconds = steps[steps_done - 1]
    before = clock()
    found = layer_search.search(source, n_drop=3, max_seconds=seconds - 1 + looks_more, threads=1)
    assert found == expected
    assert clock() - before <= seconds + looks_more + 1


@pytest.mark.parametrize("steps_done", [1, 2, 3, 4])
def test_a_search_goes_on_where_another_ended(tmp_path, short, steps_done):
    source = tiny_models.write(tmp_path / "source.gguf", "llama")
    steps: list[LayerSearch] = []
    whole = layer_search.search(source, n_drop=2, threads=1, on_found=steps.append)
    assert len(steps) == 4 and steps[-1] == whole
    more: list[LayerSearch] = []
    resumed = layer_search.search(source, n_drop=2, threads=1, resume=steps[steps_done - 1], on_found=more.append)
    assert resumed == whole and more == steps[steps_done:]


def test_a_search_of_something_else_is_not_gone_on_with(tmp_path):
    source = tiny_models.write(tmp_path / "source.gguf", "llama")
    with pytest.raises(ValueError, match=r"was of other\.gguf .* this one is of source\.gguf"):
        layer_search.search(source, resume=LayerSearch("other.gguf", layer_search.METHOD, ()))
    with pytest.raises(ValueError, match=r"source\.gguf \(by hand\)"):
        layer_search.search(source, resume=LayerSearch("source.gguf", "by hand", ()))


def test_a_model_that_does_not_work_with_fewer_layers_says_so(tmp_path, short, monkeypatch):
    source = tiny_models.write(tmp_path / "source.gguf", "llama")

    def without_the_last_tensor(reader: gguf.GGUFReader, keep: Sequence[int], target: Path) -> None:
        tensors = [(tensor.name, tensor.data, tensor.tensor_type) for tensor in reader.tensors]
        models.write_gguf(target, "llama", models.reader_values(reader), tensors[:-1])

    monkeypatch.setattr(models, "write_layer_subset", without_the_last_tensor)
    with pytest.raises(ModelError, match=r"source\.gguf with only 4 of its layers.* this one is llama"):
        layer_search.search(source, threads=1)


# -- the search, of a table ------------------------------------------------------------------------


def scored(agreements: Callable[[tuple[int, ...]], float]) -> layer_search.Score:
    return lambda keep: LayerSet(tuple(keep), agreements(tuple(keep)), 100)


def test_greedy_keeps_what_agrees_most_and_never_looks_back():
    worth = {0: 0.0, 1: 0.3, 2: 0.1, 3: 0.2, 4: 0.4}
    found = list(layer_search.greedy(scored(lambda keep: sum(worth[i] for i in keep)), range(5), 3))
    assert [one.layers for one in found] == [(0, 1, 3, 4), (0, 1, 4), (0, 4)]


def test_greedy_drops_the_earliest_of_equals_and_never_the_first_layer():
    found = list(layer_search.greedy(scored(lambda keep: 1.0 if 0 not in keep else 0.5), range(3), 9))
    assert [one.layers for one in found] == [(0, 2), (0,)]


@pytest.mark.parametrize(
    ("n_layer", "depths"),
    [(30, (28, 26, 24, 20)), (24, (22, 21, 19, 16)), (5, (4, 3)), (4, (3,)), (2, (1,)), (1, ())],
)
def test_exits_lie_at_shares_of_the_depth(n_layer, depths):
    assert layer_search.exit_depths(n_layer) == depths


# -- the command -----------------------------------------------------------------------------------


def test_the_command_saves_what_it_finds_and_goes_on(tmp_path):
    source = tiny_models.write(tmp_path / "source.gguf", "qwen2", layers=range(3), idle=(1,))
    to = tmp_path / "found.json"

    def command(*arguments: str) -> list[str]:
        script = str(ROOT / "data" / "drafters" / "search_layers.py")
        ended = subprocess.run(
            [sys.executable, script, "--model", str(source), "--to", str(to), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout.splitlines()

    assert command("--drop", "1")[-1] == "2 layers (searched): 1.000  [0, 2]"
    found = store.load(to, LayerSearch)
    assert [one.layers for one in found.early_exits] == [(0, 1)]
    (said,) = command("--drop", "2", "--resume")
    assert said.startswith("1 layers (searched)")
    assert store.load(to, LayerSearch).sets[0] == found.sets[0]


def test_the_committed_search_of_the_embedded_model_loads():
    found = store.load_layer_search()
    assert found.model.startswith("SmolLM2-135M-Instruct")
    assert all(one.layers[0] == 0 for one in (*found.sets, *found.early_exits))
