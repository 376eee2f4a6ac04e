"""Text out of tokens as they come: characters that are split over tokens, and strings that end the text.

Tokens are bytes and need not end where characters do, so everything here is done on bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence


class Assembler:
    """One text, token by token.

    piece: the bytes of a token. stop: strings that end the text; they may span tokens, and neither
    they nor anything behind them belong to it (llama.cpp's server does the same, tools/server/
    server-context.cpp, process_token). Raises ValueError for an empty stop string.
    """

    def __init__(self, piece: Callable[[int], bytes], *, stop: Sequence[str] = ()) -> None:
        if isinstance(stop, str):
            raise ValueError(f"stop is a list of strings; for one, write [{stop!r}].")
        if not all(stop):
            raise ValueError("A stop string is empty, so it would end every text before its first character.")
        self._piece = piece
        self._stop = [each.encode("utf-8", "replace") for each in stop]
        self._longest = max(map(len, self._stop), default=0)
        self._bytes = bytearray()
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")
        self._end: int | None = None

    def add(self, token: int) -> str:
        """Takes the next token and returns the characters that are now complete; stop strings may still be in it."""
        added = self._piece(token)
        # A stop string that ends in this token began at most one byte less than its length before it.
        start = max(0, len(self._bytes) - self._longest + 1)
        self._bytes += added
        if self._end is None:
            found = [place for each in self._stop if (place := self._bytes.find(each, start)) >= 0]
            self._end = min(found, default=None)
        return self._characters.decode(added)

    @property
    def stopped(self) -> bool:
        """Whether a stop string has appeared."""
        return self._end is not None

    @property
    def text(self) -> str:
        """All of it up to the stop string; bytes that are no character, or only half of one, are U+FFFD."""
        return self._bytes[: self._end].decode("utf-8", "replace")


def ending(assembler: Assembler, is_eog: Callable[[int], bool]) -> Callable[[int], bool]:
    """What the loop asks of each emitted token, once and in order: does the text end with it?"""

    def ends_text(token: int) -> bool:
        assembler.add(token)
        return assembler.stopped or is_eog(token)

    return ends_text
