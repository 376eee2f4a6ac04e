"""No tracked text, notebook outputs included, tells where or on which machine it was made."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# In words, so that this file passes its own test. A folder inside a URL or a relative path is no home.
FOLDERS = ("work", "home", "root", "Users", "tmp/ipykernel_", "private/var/folders")
REVEALING = [
    ("an absolute path", re.compile(r"(?<![\w.~$}-])/(?:" + "|".join(FOLDERS) + r")(?:/|(?<=_))[\w.-]")),
    ("a Windows home", re.compile(r"\b[A-Z]:\\+" + FOLDERS[3] + r"\\+\w")),
    ("a host name", re.compile(r'"(?:host|hostname|node_?name)"\s*:\s*"[^"]')),
    ("a host name", re.compile(r"\b[A-Za-z][\w-]*\.(?:" + "|".join(["lan", "localdomain", "internal"]) + r")\b")),
    ("a host name", re.compile(r"\b[A-Z][\w]*-[\w-]*\." + r"local\b")),
]

ALLOWED = {  # (file, text): mentions that are meant
    ("tests/test_store.py", '"host"' + ': "y'),  # a made-up field that the store must refuse
}


def tracked_texts() -> Iterator[tuple[str, str]]:
    """(path inside the project, text) of every tracked file that is text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip(f"git does not list files here: {listed.stderr.strip()}")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():  # a tracked file may be deleted in the working tree
            content = path.read_bytes()
            if b"\0" not in content:
                yield name, content.decode("utf-8", errors="replace")


def own_host_name() -> re.Pattern[str] | None:
    """This machine's name, where it is one: "build-7" is, "python" or "localhost" could be any word."""
    name = socket.gethostname().partition(".")[0]
    distinctive = len(name) >= 6 and re.search(r"[\d-]", name) is not None
    return re.compile(rf"\b{re.escape(name)}\b") if distinctive else None


def revelations(name: str, text: str) -> Iterator[str]:
    host = own_host_name()
    for what, pattern in [*REVEALING, *([("this machine's name", host)] if host else [])]:
        for match in pattern.finditer(text):
            if (name, match.group()) not in ALLOWED:
                yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match.group()!r}"


@pytest.mark.skipif(shutil.which("git") is None, reason="git lists the files, and there is no git here")
def test_no_tracked_text_reveals_where_it_was_made():
    found = [revelation for name, text in tracked_texts() for revelation in revelations(name, text)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_absolute_path_is_found(folder):
    path = "/" + folder + ("" if folder.endswith("_") else "/") + "x1/model.gguf"
    assert list(revelations("a.txt", f"first line\nloaded {path}")), path
    assert list(revelations("a.ipynb", f'"File \\"{path}\\", line 3"')), path


@pytest.mark.parametrize(
    "text",
    ["C:\\" + "Users\\ann", '{"host' + 'name": "box"}', "on box." + "lan", "on Anns-MacBook-Pro." + "local"],
)
def test_a_home_or_host_is_found(text):
    assert list(revelations("a.txt", text))


@pytest.mark.parametrize(
    "text",
    ["https://example.org/" + "home/page", "data/local/curve.json", "threading.local()", "a/work/b", "the/home team"],
)
def test_harmless_text_passes(text):
    assert not list(revelations("a.txt", text))
