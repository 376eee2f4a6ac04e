"""The glossary: every word has an entry, every link leads to one, and no word is used before a notebook links it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
GLOSSARY = FOLDER / "glossary.md"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

# An entry's heading -> how prose uses the word. Capitals count in those that are marked so.
WORDS = {
    "acceptance rate": r"acceptance rates?|\bacceptance\b",
    "alpha": r"\balphas?\b|α(?! ·)",
    "arithmetic intensity": r"arithmetic intensity",
    "bandwidth": r"\bbandwidth\b",
    "bonus token": r"\bbonus tokens?\b",
    "bootstrap": r"\bbootstrap\b",
    "break-even": r"\bbreaks?[ -]even\b",
    "chain": r"\bchains?\b(?! of operations)",
    "cliff": r"\bcliffs?\b",
    "concurrency": r"\bconcurrency\b(?! control)|\brequests at once\b|\bunder load\b",
    "context length": r"\bcontext length\b|(?<=\*)context(?=\*)",
    "cycle": r"\bcycles?\b",
    "decode": r"(?<!speculative )\bdecod(?:e|ing)\b",
    "dip": r"\bdips?\b",
    "draft": r"\bdrafts?\b(?! models?\b)",
    "draft model": r"\bdraft models?\b",
    "drafter": r"\bdrafters?\b",
    "eagle head": r"\bEAGLE(?:'s)?(?: heads?)?",
    "exact match": r"\bexact[ -]match(?:ing)?\b",
    "forward pass": r"\bforward pass(?:es)?\b|\ba full pass\b|\bpass(?:es)?\b",
    "four counts": r"\bdrafted\b|\bemit(?:s|ted)?\b",
    "gamma": r"\bgammas?\b|γ",
    "hidden state": r"\bhidden[ -]states?\b",
    "interval": r"\b95 ?% intervals?\b|\bintervals?\b",
    "k": r"(?-i:(?<![\w·])k\b(?! ·))",
    "kernel": r"(?<!end the )\bkernels?\b",
    "kv cache": r"\b(?:KV|both|its|in the) caches?\b|\bcache for as many tokens\b",
    "layer skip": r"\blayers? (?:are )?left out\b|\bleav(?:e|ing) layers out\b|\bleft-out layers\b",
    "ledger": r"\bledger\b",
    "logits": r"\blogits?\b",
    "medusa heads": r"\bMedusa(?:'s)?(?: heads?)?",
    "memory-bound": r"\bmemory-bound\b",
    "n-gram": r"\bn-grams?\b",
    "p_min": r"\bp_min\b",
    "pending token": r"\bpending token\b",
    "prefill": r"\bprefill\b",
    "rejection sampling": r"\brejection sampling\b",
    "rollback": r"\brollback\b|\brolled back\b|\brolls? back\b",
    "rope and m-rope": r"\bM-RoPE\b",
    "speculative decoding": r"\bspeculative decoding\b",
    "staircase": r"\bstaircases?\b",
    "target": r"\btargets?\b",
    "temperature": r"\btemperatures?\b",
    "tile": r"\btiles?\b",
    "time of a pass": r"(?-i:\bT\(N\))",
    "tokens in one pass": r"(?-i:(?<![\w(])N\b(?!\)))",
    "tokens per cycle": r"\btokens per cycle\b",
    "tree": r"\btrees?\b",
    "weight format": r"\bweight formats?\b",
}

# What is no prose: code, mathematics, headings, and links to somewhere else with their labels.
NO_PROSE = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|^#.*?$|!?\[[^\]\n]*\]\((?!glossary\.md#)[^)\s]*\)|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
LINK = re.compile(r"\[([^\]\n]*)\]\(glossary\.md#([^)\s]*)\)")


def anchor(heading: str) -> str:
    """As code hosts and JupyterLab both make it, which is why headings are in small letters without punctuation."""
    return heading.replace(" ", "-")


def entries() -> dict[str, str]:
    """Heading -> the text under it."""
    parts = re.split(r"^## (.+)$", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@cache
def prose(notebook: Path) -> list[tuple[int, str]]:
    """(cell, its source with everything that is no prose blanked); places stay what they are."""
    return [
        (number, NO_PROSE.sub(lambda match: " " * len(match.group()), cell.source))
        for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells)
        if cell.cell_type == "markdown"
    ]


def uses(text: str, word: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, linked) of each use in some prose. The label of another word's link is no use."""
    links = list(LINK.finditer(text))
    own = [(link.start(), link.end(), True) for link in links if link.group(2) == anchor(word)]
    bare = LINK.sub(lambda match: " " * len(match.group()), text)
    found = [(match.start(), match.end(), False) for match in re.finditer(WORDS[word], bare, re.IGNORECASE)]
    yield from sorted(own + found)


def test_every_entry_is_short_and_says_where_it_is_taught():
    for heading, text in entries().items():
        assert heading == heading.lower() and re.fullmatch(r"[a-z0-9_ -]+", heading), heading
        taught = re.search(r"Taught in \[\d\d · [^\]]+\]\((\d\d_\w+\.ipynb)\)\.\s*$", text)
        assert taught and (FOLDER / taught.group(1)).is_file(), heading
        sentences = len(re.findall(r"[.:?](?=\s|$)", text[: taught.start()]))
        assert 2 <= sentences <= 7, f"{heading}: {sentences} sentences"


def test_the_glossary_has_an_entry_for_every_word_and_its_own_links_hold():
    headings = list(entries())
    assert headings == sorted(WORDS), "entries stand in alphabetical order, one for each word"
    inside = re.findall(r"\]\(#([^)]*)\)", GLOSSARY.read_text(encoding="utf-8"))
    assert set(inside) == set(map(anchor, headings)), "the list at the top names every entry"


def test_every_link_of_a_notebook_leads_to_an_entry_and_every_entry_is_linked():
    anchors = set(map(anchor, entries()))
    linked = {target: file.stem for file in NOTEBOOKS for _, text in prose(file) for _, target in LINK.findall(text)}
    assert set(linked) <= anchors, {target: file for target, file in linked.items() if target not in anchors}
    assert anchors <= set(linked), f"linked from no notebook: {sorted(anchors - set(linked))}"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_links_each_word_where_it_first_uses_it_and_only_there(file: Path):
    for word in WORDS:
        found = [(number, text[start:end], linked) for number, text in prose(file)
                 for start, end, linked in uses(text, word)]  # fmt: skip
        if found:
            number, label, linked = found[0]
            assert linked, f"cell {number} uses {label!r} before anything links it to glossary.md#{anchor(word)}"
            more = [number for number, _, linked in found[1:] if linked]
            assert not more, f"cells {more} link {word!r} again"
