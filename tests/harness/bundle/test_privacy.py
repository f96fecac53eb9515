"""Secrets that can be told from text stop an export; words that stand for none do not."""

import pytest

from harness.bundle.privacy import refuse_private
from harness.errors import UsageError

TEXT = "the key to a test is: none of it is EMPTY, password or configuration 12345678 abc1defg"


def refuse(text, *forbidden, **environ):
    refuse_private({"program.json": text}, forbidden, without_paths=(), environ=environ)


@pytest.mark.parametrize("key", ["test", "key", "none", "EMPTY", "password", "configuration", "a", "", " ", "1234"])
def test_a_word_is_no_secret(key):
    refuse(TEXT, key, SERVICE_TOKEN=key)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("sk-1234567890abcdef", "Bearer sk-1234567890abcdefxyz"),
        ("abcdefghijklmnopqrstuvwxyz", "xabcdefghijklmnopqrstuvwxyzx"),
        ("abc1defg", TEXT),
        ("abc1defg\n", TEXT),
        ("http://a/v1", "see http://a/v1/models"),
        ('a"1\\bcdefgh', r"{\"a\": \"a\"1\\bcdefgh\"}"),
    ],
)
def test_a_secret_is_found(key, text):
    with pytest.raises(UsageError, match=r"its program.json would hold a key or an endpoint$") as error:
        refuse(text, key)
    assert key not in str(error.value)


def test_a_short_key_inside_a_longer_word_is_another_word():
    refuse("abc1defgh xabc1defg abc1defg9", "abc1defg")


def test_variables_named_like_secrets():
    with pytest.raises(UsageError, match="the value of SERVICE_TOKEN"):
        refuse("x abcdef123456 y", SERVICE_TOKEN="abcdef123456")
    refuse("x abcdef12345 y", SERVICE_TOKEN="abcdef12345")
