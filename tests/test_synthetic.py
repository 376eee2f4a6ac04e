"""Synthetic models: the published dimensions, llama.cpp's own choice of types, files that load and cost the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import THREADS
from tiny_models import write

from specnb import gguf_header, measure, models, store, synthetic
from specnb.backend import Model, ModelError, Session
from specnb.synthetic import SHAPES

# Parameters of the published weights, as the hub counts them in each repository's safetensors.
PUBLISHED_PARAMETERS = {
    "qwen2-0.5B": 494_032_768,
    "qwen2-1.5B": 1_543_714_304,
    "qwen2-3B": 3_085_938_688,
    "qwen2-7B": 7_615_616_512,
    "qwen2-14B": 14_770_033_664,
    "llama-135M": 134_515_008,
    "llama-1B": 1_235_814_400,
    "llama-3B": 3_212_749_824,
    "llama-7B": 6_738_415_616,
    "llama-8B": 8_030_261_248,
    "llama-70B": 70_553_706_496,
}
SMALL = {
    architecture: synthetic.Shape(f"small {architecture}", architecture, 6, 256, 512, 4, 2, 64, 700, tied, 1e4)
    for architecture, tied in (("llama", False), ("qwen2", True))
}


def test_every_shape_has_as_many_parameters_as_were_published():
    assert {name: shape.n_parameters for name, shape in SHAPES.items()} == PUBLISHED_PARAMETERS


def test_an_unknown_shape_or_an_impossible_one_is_refused():
    with pytest.raises(ModelError, match=r"no shape 'gpt-2'; there are qwen2-0\.5B"):
        synthetic.shape_named("gpt-2")
    with pytest.raises(ValueError, match="'phi3' is not built"):
        replace(SMALL["llama"], architecture="phi3")
    with pytest.raises(ValueError, match="impossible dimensions"):
        replace(SMALL["llama"], n_head_kv=3)
    with pytest.raises(ValueError, match="impossible dimensions"):
        replace(SMALL["llama"], n_layer=513)  # llama.cpp would end the process


def test_planned_sizes_are_those_that_the_article_read_off_its_files():
    """Its 0.5B files hold the tied matrix twice, and llama-bench prints gibibytes with two digits."""
    half = replace(SHAPES["qwen2-0.5B"], tied=False)
    assert half.n_parameters == pytest.approx(STUDY.facts["draft_parameters"], rel=0.001)
    planned = [synthetic.plan(SHAPES["qwen2-7B"], "Q4_K_M"), *(synthetic.plan(half, f) for f in ("Q4_K_M", "Q8_0"))]
    mib = [plan.weight_bytes / 2**20 for plan in planned]
    assert f"{mib[0] / 1024:.2f}" == f"{STUDY.bandwidth[0].weights_mib / 1024:.2f}"
    assert mib[1:] == pytest.approx([row.weights_mib for row in STUDY.bandwidth[1:]], abs=0.005)


STUDY = store.load_m5_pro()


@pytest.mark.model
@pytest.mark.parametrize("format", ["Q4_0", "Q8_0"])
def test_a_copy_has_the_tensors_of_the_original_type_by_type(embedded, format):
    shape = synthetic.shape_of(embedded)
    assert replace(shape, name="llama-135M") == SHAPES["llama-135M"]
    plan = synthetic.plan(shape, format)
    with synthetic.model_file(plan) as copy:
        found, expected = (
            {tensor.name: (tensor.shape, tensor.type) for tensor in gguf_header.read(path).tensors}
            for path in (copy, models.in_format(embedded, format))
        )
        assert found == expected
        assert synthetic.bytes_per_pass(copy) == plan.bytes_per_pass == plan.weight_bytes
    assert not copy.exists()


def test_formats_give_some_layers_more_bits_and_the_added_layers_have_the_mean():
    plan = synthetic.plan(SHAPES["qwen2-7B"], "Q4_K_M")
    sizes = plan.layer_bytes()
    assert len(Counter(sizes)) == 2
    few, many = synthetic.layers_within(plan, 4 * 2**30)
    added = [sizes[i] for i in many if i not in few]
    assert set(few) < set(many) and len(few) == 1
    assert np.mean(added) == pytest.approx(np.mean(sizes), rel=0.03)


def test_an_untied_embedding_is_not_read():
    tied, untied = (synthetic.plan(replace(SMALL["llama"], tied=tied), "Q8_0") for tied in (True, False))
    assert untied.bytes_per_pass == tied.bytes_per_pass == tied.weight_bytes < untied.weight_bytes


def test_the_budget_decides_how_many_layers():
    plan = synthetic.plan(SMALL["llama"], "F32")
    layer, head = plan.layer_bytes()[0], plan.head_bytes
    assert synthetic.layers_within(plan, 2**40)[1] == tuple(range(6))
    few, many = synthetic.layers_within(plan, 2 * head + 4 * layer)
    assert (len(few), len(many)) == (1, 3)
    with pytest.raises(ModelError, match=r"need .* GiB; the budget is .* larger budget_gib"):
        synthetic.layers_within(plan, 2 * head + 2.9 * layer)


@pytest.mark.parametrize("architecture", SMALL)
@pytest.mark.parametrize("format", ["F32", "F16", "Q8_0", "Q4_0", "Q4_K_M"])
def test_some_layers_load_and_give_finite_logits_of_the_right_size(architecture, format, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path))
    shape = SMALL[architecture]
    with synthetic.model_file(synthetic.plan(shape, format), (1, 4)) as path, Model(path) as model:
        info = model.info
        assert (info.n_layer, info.n_embd, info.n_vocab) == (2, shape.n_embd, shape.n_vocab)
        assert (info.architecture, info.format) == (architecture, format)
        with Session(model, n_ctx=64, n_batch=64, threads=THREADS) as session:
            session.extend(list(range(40)))
            logits = np.stack([session.logits(i) for i in range(40)])
            session.probe_rollback()
    assert logits.shape == (40, 700) and np.isfinite(logits).all()
    assert (logits.std(axis=1) > 0).all()
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_hollow_model_is_as_deep_and_weighs_nothing():
    hollow = synthetic.hollow(SHAPES["qwen2-7B"])
    assert hollow.n_layer == 28 and hollow.architecture == "qwen2"
    assert synthetic.plan(hollow, "F32").weight_bytes < 2**20
    with synthetic.model_file(synthetic.plan(hollow, "F32")) as path, Model(path) as model:
        assert model.info.n_layer == 28


def test_a_full_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECNB_CACHE", str(tmp_path))
    plan = synthetic.plan(SMALL["llama"], "Q8_0")
    monkeypatch.setattr(synthetic.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    with pytest.raises(ModelError, match=r"6 layers of small llama in Q8_0 need 0\.00 GiB on disk.*0\.00 GiB left"):
        with synthetic.model_file(plan):
            pass
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_models_of_other_makers_are_copied_by_their_header(tmp_path):
    shape = synthetic.shape_of(write(tmp_path / "tiny.gguf", "qwen2"))
    assert (shape.architecture, shape.n_layer, shape.head_size, shape.tied) == ("qwen2", 5, 16, False)


@pytest.mark.model
def test_random_weights_cost_what_real_ones_do(embedded):
    """Side by side, so that what disturbs one disturbs the other; the benchmark asks for 5 % on a quiet machine."""
    plan = synthetic.plan(synthetic.shape_of(embedded), "Q4_0")
    with (
        synthetic.model_file(plan) as copy,
        Model(models.in_format(embedded, "Q4_0")) as real_model,
        Model(copy) as copy_model,
        Session(real_model, n_ctx=128, n_batch=64, threads=THREADS) as real,
        Session(copy_model, n_ctx=128, n_batch=64, threads=THREADS) as copied,
    ):
        curves = measure.cost_curves((real, copied), (1, 2, 4, 8), context_length=16, rounds=(7, 7))
    ratios = [
        median(b / a for a, b in zip(curves[0].samples_ms(n), curves[1].samples_ms(n), strict=True))
        for n in curves[0].ns
    ]
    assert median(ratios) == pytest.approx(1.0, abs=0.15)


def test_a_shape_is_timed_whole_where_it_fits_and_else_extrapolated_and_says_so():
    whole = measure.shape_cost(SMALL["qwen2"], "Q8_0", ns=(1, 2), context_length=8, threads=THREADS, rounds=(3, 3))
    assert (whole.few, whole.many, whole.n_layer, whole.extrapolated) == (1, 6, 6, False)
    assert whole.n_parameters == SMALL["qwen2"].n_parameters
    part = measure.shape_cost(
        replace(SMALL["qwen2"], n_layer=400), "Q8_0", ns=(1, 2), budget_gib=0.01, context_length=8, threads=THREADS,
        rounds=(5, 5),
    )  # fmt: skip
    assert part.extrapolated and part.many == 4 and part.n_layer == 400
    # A hundred times the layers of the other: far more, whatever the noise.
    assert part.median_ms[1] > 10 * whole.median_ms[1]


@pytest.mark.model
def test_a_grid_times_every_depth_and_format_and_a_hollow_model(embedded):
    grid = measure.layer_grid(embedded, (2, 4), ("Q4_0", "Q8_0"), threads=THREADS, rounds=(3, 3), context_length=8)
    labels = [measure.grid_label(n, f) for f in ("Q4_0", "Q8_0") for n in (2, 4)]
    assert [cost.label for cost in grid.costs] == [*labels, measure.HOLLOW]
    assert [cost.n_layer for cost in grid.costs] == [2, 4, 2, 4, 4]
    assert [cost.format for cost in grid.costs] == ["Q4_0", "Q4_0", "Q8_0", "Q8_0", "F32"]
    sizes = [cost.bytes_per_pass for cost in grid.costs]
    assert sizes[0] < sizes[1] < sizes[3] and sizes[0] < sizes[2] and sizes[4] < sizes[0] / 20
    assert all(len(cost.samples_ms) == 3 for cost in grid.costs)
