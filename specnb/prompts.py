"""The prompts of the notebooks, by kind.

Chosen so that the embedded model answers them greedily without falling into a repetition loop
within 160 tokens. It has 135 million parameters: it copies well, translates badly and invents freely.
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
            "a stack class",
            "Write a Python class Stack with the methods push, pop, peek and is_empty.",
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
            "sentences with dates",
            "Extract every sentence that mentions a date from the text, word for word.\n"
            "\n"
            "The lighthouse was finished in March 1871 by a crew of forty workers. Its lamp could be seen from "
            "twenty miles away. In October 1903 a storm broke the great lens, and the keeper lit oil lamps for "
            "eleven nights. The lens was replaced in May 1904. Visitors climb the tower today and see the whole "
            "bay.",
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
