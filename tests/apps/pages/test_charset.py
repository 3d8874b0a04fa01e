"""Requests that name an encoding of their own for their fields."""

from __future__ import annotations

import pytest
from axes.models import AccessAttempt
from django.test import Client

pytestmark = pytest.mark.django_db
FORM = b'--b\r\nContent-Disposition: form-data; name="username"\r\n\r\n%s\r\n--b--\r\n'


@pytest.mark.parametrize(("charset", "typed"), [
    ("unicode_escape", b"\\ud800"), ("utf-7", b"+2AA-"), ("raw_unicode_escape", b"\\ud800"), ("idna", b"ben"),
    ("hex", b"6265"), ("undefined", b"ben"), ("punycode", b"\x80"), ("utf-16", b"be"), ("latin-1", b"ben"),
])
def test_a_form_in_another_encoding_is_refused_with_a_sentence(charset: str, typed: bytes) -> None:
    answer = Client().generic("POST", "/accounts/sign-in/", FORM % typed,
                              content_type=f"multipart/form-data; boundary=b; charset={charset}")
    assert answer.status_code == 400 and "Nothing was read or changed" in answer.content.decode()
    assert not AccessAttempt.objects.exists()


def test_so_is_an_address_of_a_page() -> None:
    answer = Client().get("/accounts/sign-in/?next=%5Cud800", headers={"content-type": "text/plain; charset=utf-7"})
    assert answer.status_code == 400


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=b", "multipart/form-data; boundary=b; charset=UTF8",
                                  "multipart/form-data; boundary=b; charset=nonsense"])
def test_utf_8_and_what_is_no_encoding_at_all_are_read(kind: str) -> None:
    answer = Client().generic("POST", "/accounts/sign-in/", FORM % "bén".encode(), content_type=kind)
    assert answer.status_code == 403 and 'value="bén"' in answer.content.decode()
