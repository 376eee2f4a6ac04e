"""Where the text comes from: pasted, a file, standard input, or an address that the reader named."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from urllib import error, parse, request

from .. import messages

MOST_BYTES = 16 * 2**20
"""A larger text is refused, and no more than this is ever read."""

TIMEOUT_S = 5.0
_CHUNK = 65_536


class Unreadable(ValueError):
    """A text that cannot be had or is none. The message names the source and the reason."""


def from_paste(text: str) -> str:
    """The text itself, if it is one and not too long."""
    if len(text) > MOST_BYTES:
        raise Unreadable(messages.intake_too_large(messages.INTAKE_PASTED, MOST_BYTES))
    if "\0" in text:
        raise Unreadable(messages.intake_binary(messages.INTAKE_PASTED))
    return text


def from_file(path: str | Path) -> str:
    """The text of a file; of standard input for "-". Devices, pipes and folders are refused unread."""
    if str(path) == "-":
        return _decoded(sys.stdin.buffer.read(MOST_BYTES + 1), messages.INTAKE_STDIN)
    path = Path(path)
    try:
        if not path.is_file():
            raise Unreadable(messages.intake_no_file(path.name, path.exists()))
        with path.open("rb") as file:
            return _decoded(file.read(MOST_BYTES + 1), path.name)
    except (OSError, ValueError) as reason:
        if isinstance(reason, Unreadable):
            raise
        raise Unreadable(messages.intake_not_read(path.name[:80], str(reason))) from None


def from_bytes(content: bytes, name: str) -> str:
    """The text of a file that was handed over as a whole. name: what to call it in an error."""
    return _decoded(content, name[:80])


def from_address(address: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """What a server answers to one GET: http or https, never redirected, within ``timeout_s`` in all.

    No proxy is used and nothing is sent but the request: no cookies, no credentials.
    """
    parts = _checked_address(address)
    shown = f"{parts.scheme}://{parts.netloc}"
    answer: list[str | Exception] = []

    def get() -> None:
        try:
            answer.append(_decoded(_got(address, timeout_s), shown))
        except Exception as reason:  # handed over to the caller's thread below
            answer.append(reason)

    # A socket's time limit starts anew with every byte; a server that trickles would hold the caller for hours.
    worker = threading.Thread(target=get, name="specnb-intake", daemon=True)
    worker.start()
    worker.join(timeout_s)
    if not answer:
        raise Unreadable(messages.intake_timed_out(shown, timeout_s))
    if isinstance(answer[0], Unreadable):
        raise answer[0]
    if isinstance(answer[0], Exception):
        raise Unreadable(messages.intake_not_read(shown, _reason(answer[0])))
    return answer[0]


def is_address(text: str) -> bool:
    return "://" in text[:20]


def _checked_address(address: str) -> parse.SplitResult:
    try:
        parts = parse.urlsplit(address.strip())
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known or any(character <= " " for character in address.strip()):
        raise Unreadable(messages.intake_bad_address(address[:80]))
    if "@" in parts.netloc:
        raise Unreadable(messages.INTAKE_NO_CREDENTIALS)
    return parts


class _NotRedirected(request.HTTPRedirectHandler):
    def redirect_request(self, _request, _file, code: int, _message, _headers, new_address: str) -> None:
        raise Unreadable(messages.intake_redirected(code, new_address[:120]))


def _got(address: str, timeout_s: float) -> bytes:
    opener = request.build_opener(request.ProxyHandler({}), _NotRedirected)
    asked = request.Request(address.strip(), headers={"Accept": "text/plain, application/json"}, method="GET")
    with opener.open(asked, timeout=timeout_s) as answer:
        return _limited(answer.read)


def _limited(read: Callable[[int], bytes]) -> bytes:
    content = bytearray()
    while len(content) <= MOST_BYTES and (chunk := read(_CHUNK)):
        content += chunk
    return bytes(content)


def _decoded(content: bytes, source: str) -> str:
    if len(content) > MOST_BYTES:
        raise Unreadable(messages.intake_too_large(source, MOST_BYTES))
    # PowerShell's ">" writes UTF-16 with a mark in front.
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding, errors="strict" if encoding == "utf-16" else "replace")
    except UnicodeDecodeError:
        raise Unreadable(messages.intake_binary(source)) from None
    # Logs of several programs may hold a broken character; a picture or a model file holds nothing but such.
    if "\0" in text or text.count("\ufffd") > 0.02 * len(text) + 8:
        raise Unreadable(messages.intake_binary(source))
    return text


def _reason(failure: Exception) -> str:
    if isinstance(failure, error.HTTPError):
        return f"HTTP {failure.code}"
    return str(getattr(failure, "reason", failure)) or type(failure).__name__
