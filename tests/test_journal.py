"""The journal of an interrupted benchmark or sweep."""

from __future__ import annotations

import pytest

from specnb import journal as journal_module
from specnb.journal import Journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_what_was_added_comes_back_in_order_to_whoever_opens_it_next(path):
    assert list(Journal(path, key="a").entries()) == []
    journal = Journal(path, key="a")
    journal.add({"cell": 1})
    journal.add([{"cell": 2}, {"cell": 3}])
    assert list(Journal(path, key="a").entries()) == [{"cell": 1}, [{"cell": 2}, {"cell": 3}]]


def test_a_line_cut_short_by_a_kill_costs_that_entry_and_no_later_one(path):
    Journal(path, key="a").add(1)
    with path.open("ab") as file:
        file.write('{"key": "cut ö'.encode()[:-1])
    journal = Journal(path, key="a")
    journal.add(2)
    journal.add(3)
    assert list(journal.entries()) == [1, 2, 3]


def test_entries_of_another_key_or_of_yesterday_do_not_count(path, monkeypatch):
    Journal(path, key="a").add(1)
    Journal(path, key="b").add(2)
    assert list(Journal(path, key="b").entries()) == [2]
    now = journal_module.time.time()
    monkeypatch.setattr(journal_module.time, "time", lambda: now + journal_module.KEPT_S + 1)
    assert list(Journal(path, key="a").entries()) == []


def test_a_complete_benchmark_leaves_nothing_behind(path):
    journal = Journal(path, key="a")
    journal.end()
    journal.add(1)
    journal.end()
    assert list(Journal(path, key="a").entries()) == []


def test_what_json_cannot_hold_is_refused_and_not_written(path):
    journal = Journal(path, key="a")
    with pytest.raises(ValueError):
        journal.add(float("nan"))
    assert not path.exists()
