"""The prompts of the notebooks, by kind.

Chosen so that the embedded model answers them greedily without falling into a repetition loop
within 128 tokens. It has 135 million parameters: it copies well, translates badly and invents freely.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """kind: what the reader picks from. title: a few words for a menu. text: the message as sent."""

    kind: str
    title: str
    text: str


PROMPTS: dict[str, Prompt] = {
    prompt.kind: prompt
    for prompt in (
        Prompt(
            "code",
            "bubble sort, explained",
            "Write a Python function that sorts a list of numbers with bubble sort, then explain it step by step.",
        ),
        Prompt(
            "rewrite",
            "correct the spelling",
            "Copy the following text and correct its spelling mistakes. Change nothing else.\n"
            "\n"
            "The libary opens at nine and closes at six. Books can be borowed for three weeks, and most of them "
            "can be renewed twice. If a book is late, the libary sends a letter and asks for a small fee. "
            "Children can visit the libary on Saturday mornings, when a story is read aloud in the garden.",
        ),
        Prompt(
            "extract",
            "names and dates",
            "Extract the names and dates from this text as a list. Quote the sentence of each.\n"
            "\n"
            "The lighthouse was finished in March 1871 by Henrik Lund. A storm broke the great lens in October "
            "1903. Clara Holm replaced the lens in May 1904.",
        ),
        Prompt(
            "translate",
            "English to Spanish",
            "Translate this text to Spanish.\n"
            "\n"
            "The market is open every day from seven in the morning. You can buy fresh bread, cheese and fruit "
            "there. On Sundays there is music in the square.",
        ),
        Prompt(
            "story",
            "the lighthouse keeper",
            "Write a short story about a lighthouse keeper who finds a message in a bottle.",
        ),
        Prompt(
            "chat",
            "weather and climate",
            "What is the difference between weather and climate? Answer in a few sentences.",
        ),
    )
}
"""Kind -> prompt, in the order a menu shows them."""
