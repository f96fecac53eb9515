"""The page about requests shows what is sent now."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def requests_page(monkeypatch):
    spec = importlib.util.spec_from_file_location("docs_requests", ROOT / "docs" / "write_requests.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "docs_requests", module)  # pydantic looks its classes' module up by name
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_is_sent_now(requests_page):
    written = requests_page.PAGE.read_text(encoding="utf-8")

    assert requests_page.page() == written, "requests are sent in another form: python docs/write_requests.py"


def test_no_key_and_no_long_bytes_are_shown(requests_page):
    written = requests_page.PAGE.read_text(encoding="utf-8")

    assert requests_page.KEY not in written
    assert "静脉 α" in written
    assert written.count("(128 characters)") == len(requests_page.CASES)
