"""The flags to paste: spelled as llama.cpp spells them, for every drafter there is."""

from __future__ import annotations

import shlex

import pytest

from specnb import drafters, flags
from specnb.records import Advice, Choice, Machine, Setting

LLAMA_CPP_TYPES = {
    "none", "draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark", "draft-mtp", "ngram-cache",
    "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod",
}  # fmt: skip
LLAMA_CPP_OPTIONS = {
    "--spec-type", "-md", "--spec-draft-n-max", "--spec-draft-n-min", "--spec-draft-p-min",
    *(f"--spec-{kind}-size-{each}" for kind in ("ngram-simple", "ngram-map-k", "ngram-map-k4v") for each in "nm"),
    "--spec-ngram-mod-n-match", "--spec-ngram-mod-n-min", "--spec-ngram-mod-n-max",
}  # fmt: skip


def options(found: flags.Flags) -> dict[str, str]:
    return dict(zip(found.arguments[::2], found.arguments[1::2], strict=True))


@pytest.mark.parametrize("name", drafters.names())
@pytest.mark.parametrize("k", [1, 2, 8, 16])
def test_every_drafter_has_flags_that_llama_cpp_knows(name, k):
    found = flags.llama_cpp(Setting(name, 0 if name == "none" else k))
    assert options(found).keys() <= LLAMA_CPP_OPTIONS
    assert set(options(found)["--spec-type"].split(",")) <= LLAMA_CPP_TYPES
    assert found.same or found.notes, "what differs has to be said"
    assert shlex.split(found.text) == list(found.arguments)


@pytest.mark.parametrize("name", ["prompt_lookup", "distilled", "layer_skip", "eagle", "medusa"])
def test_what_llama_cpp_does_not_have_is_said_with_the_nearest(name):
    found = flags.llama_cpp(Setting(name, 4))
    assert not found.same and "earest" in found.notes[0]


def test_a_draft_model_takes_k_n_min_p_min_and_a_file():
    found = flags.llama_cpp(Setting("draft_model", 5, 0.6), draft_file="my models/small.gguf", n_min=1)
    assert found.same
    assert options(found) == {
        "--spec-type": "draft-simple",
        "-md": "my models/small.gguf",
        "--spec-draft-n-max": "5",
        "--spec-draft-n-min": "1",
        "--spec-draft-p-min": "0.6",
    }
    assert "'my models/small.gguf'" in found.text


def test_look_ups_read_lengths_of_their_own_and_not_the_draft_models():
    found = options(flags.llama_cpp(Setting("ngram_simple", 6)))
    assert found == {
        "--spec-type": "ngram-simple",
        "--spec-ngram-simple-size-n": "3",
        "--spec-ngram-simple-size-m": "6",
    }
    assert options(flags.llama_cpp(Setting("ngram_mod", 6)))["--spec-ngram-mod-n-max"] == "6"


def test_a_length_that_llama_cpp_would_never_draft_is_raised_and_told():
    """ngram-simple drops copies shorter than its pattern of 3, so size-m 1 would draft nothing at all."""
    found = flags.llama_cpp(Setting("ngram_simple", 1))
    assert options(found)["--spec-ngram-simple-size-m"] == "3"
    assert not found.same and "up to 3 tokens instead" in found.notes[0]
    assert options(flags.llama_cpp(Setting("ngram_map_k", 1)))["--spec-ngram-map-k-size-m"] == "1"


def test_a_chain_asks_the_look_up_first_and_has_both_lengths():
    found = options(flags.llama_cpp(Setting("chain", 4)))
    assert found["--spec-type"] == "ngram-simple,draft-simple"
    assert found["--spec-draft-n-max"] == "4" and found["--spec-ngram-simple-size-m"] == "4"


def test_the_cache_has_a_fixed_length():
    assert flags.llama_cpp(Setting("ngram_cache", 8)).same
    assert "fixed at 8" in flags.llama_cpp(Setting("ngram_cache", 4)).notes[0]


def test_heads_of_the_targets_own_file_need_no_second_one():
    assert "-md" not in options(flags.llama_cpp(Setting("medusa", 3)))
    assert options(flags.llama_cpp(Setting("eagle", 3)))["-md"] == "draft.gguf"


def test_what_is_advised_for_several_kinds_is_pasted_once():
    advised, off = Setting("ngram_simple", 6), Setting("eagle", 2)
    choices = [
        Choice("rewrite", "on", advised, 1.6, (1.5, 1.7)),
        Choice("chat", "off", off, 0.8, (0.7, 0.9)),
        Choice("extract", "on", advised, 1.4, (1.3, 1.5)),
    ]
    told = flags.to_paste(Advice(Machine("a machine"), "a model", tuple(choices), None))
    assert told.count("--spec-type ngram-simple") == 1 and "For rewrite and extract (ngram_simple with k = 6):" in told
    assert "For chat (plain decoding):" in told and "draft-eagle3" not in told


def test_the_setting_for_all_kinds_is_pasted_first():
    one, other = Setting("ngram_simple", 3), Setting("ngram_simple", 6)
    by_kind = (Choice("rewrite", "on", other, 1.6, (1.5, 1.7)), Choice("chat", "off", other, 0.9, (0.8, 0.95)))
    overall = Choice("", "on", one, 1.2, (1.1, 1.3))
    told = flags.to_paste(Advice(Machine("a machine"), "a model", by_kind, overall))
    heads = [line for line in told.splitlines() if line.endswith(":")]
    assert heads == [
        "One server for everything (ngram_simple with k = 3):",
        "For rewrite (ngram_simple with k = 6):",
        "For chat (plain decoding):",
    ]
    assert told.index("--spec-ngram-simple-size-m 3") < told.index("--spec-ngram-simple-size-m 6")


@pytest.mark.parametrize("verdict", ["off", "unclear"])
def test_where_nothing_pays_over_all_kinds_the_one_server_decodes_plainly(verdict):
    overall = Choice("", verdict, Setting("ngram_simple", 3), 1.0, (0.9, 1.1))
    told = flags.to_paste(Advice(Machine("a machine"), "a model", (), overall))
    assert told.startswith("One server for everything (plain decoding):") and "--spec-type none" in told


def test_an_unknown_drafter_is_refused():
    with pytest.raises(ValueError, match="no drafter 'oracle'; there are none, "):
        flags.llama_cpp(Setting("oracle", 4))


@pytest.mark.parametrize("name", ["ngram_map_k", "ngram_map_k4v"])
def test_a_shorter_copy_of_a_map_is_another_setting_there(name):
    """Its size also decides which places match, so cutting a longer copy is not the same."""
    exact, cut = flags.llama_cpp(Setting(name, 8)), flags.llama_cpp(Setting(name, 4))
    assert exact.same and not exact.notes
    assert not cut.same and "copies of 8 tokens were looked for and cut to 4" in cut.notes[0]
    assert flags.llama_cpp(Setting("ngram_simple", 4)).same
