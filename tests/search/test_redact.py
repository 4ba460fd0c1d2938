"""Redaction: credentials go, prose stays."""

import pytest

from acp_history_bridge.search.redact import RULES, redact

# Assembled, so that no scanner takes this file for a leak.
SECRETS = {
    "aws-access-key": "AKIA" + "Q3EXAMPLE0EXAMPL",
    "github-token": "ghp_" + "a1B2" * 9,
    "gitlab-token": "glpat-" + "x1y2z3w4v5u6t7s8r9q0",
    "slack-token": "xoxb-" + "1234567890-abcdef",
    "sk-key": "sk-" + "proj-abcdefghij0123456789",
    "stripe-key": "sk_" + "live_abcdefghij0123456789",
    "google-api-key": "AIza" + "S" * 35,
    "google-oauth": "ya29." + "a0AfH6SMB-example_token_text",
    "npm-token": "npm_" + "A1b2C3d4E5" * 4,
    "pypi-token": "pypi-AgE" + "IcHlwaS5vcmc" * 6,
    "hugging-face-token": "hf_" + "AbCdEfGhIj" * 4,
    "sendgrid-key": "SG." + "abcdefghijklmnop1234." + "abcdefghijklmnop1234",
    "json-web-token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.sflKxwRJSMeKKF2QT4",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----",
    "url-password": "postgres://app:not-a-secret@db.invalid/x",
    "bearer": "Authorization: Bearer abcdefghij.klmnop-qrst",
    "account-key": "AccountKey=" + "abcdefghijklmnopqrstuvwx==",
}


def test_every_rule_has_an_example() -> None:
    """No rule stands untested."""
    assert {rule.name for rule in RULES} == set(SECRETS)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.fault("S9")
def test_a_credential_of_each_shape_is_replaced(name: str) -> None:
    """Alone, in a sentence and in JSON."""
    for text in (SECRETS[name], f"use {SECRETS[name]} for it", f'{{"x": "{SECRETS[name]}"}}'):
        assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2hunter",
        "DB_PASSWORD=hunter2hunter",
        '"api_key": "0123abcd4567"',
        "SECRET_TOKEN => s3cr3tvalue",
        "access_key = 'AbC123dEf456'",
        '"command": "password=hunter2hunter3x"',
        '{"line": "access_key: hunter2hunter3x"}',
        "https://example.org/?page=1&token=s3cr3tvalue",
    ],
)
@pytest.mark.fault("S9")
def test_an_assigned_secret_is_replaced_and_its_name_stays(text: str) -> None:
    """The name of the setting is worth finding, its value is not."""
    redacted = redact(text)

    assert "[redacted]" in redacted
    assert redacted.split("[redacted]")[0].strip("\"' =:>") in text
    assert "3" not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "The password is checked in auth.py: see check_password().",
        "token = tokens[index + 12345678]",
        "secret: string; apiKey: string",
        "https://example.org:8080/path@2",
        "max_tokens: 4096, sk-learn and task-force",
        "password = os.environ['PGPASSWORD']",
        "at 12:34:56789012 the sun rose",
        "bearer of bad news arrived late",
        "see eyJ in the middle of a word",
    ],
)
@pytest.mark.fault("S9")
def test_prose_and_code_about_secrets_stay_searchable(text: str) -> None:
    """What only speaks of passwords is not a password."""
    assert redact(text) == text


@pytest.mark.fault("Z3")
def test_redaction_is_idempotent() -> None:
    """A redacted text has nothing left to redact."""
    once = redact("\n".join(SECRETS.values()))

    assert redact(once) == once


@pytest.mark.fault("S9")
@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["=a", "://a:", "accountkey=", "bearer ", "password:", "eyJaaaaaaaaaaa.", "token=a"])
def test_a_text_made_of_beginnings_takes_linear_time(piece: str) -> None:
    """A hostile transcript must not hold up the index."""
    redact(piece * 20_000)
