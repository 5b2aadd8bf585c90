"""Settings: what outranks what, and what is refused."""

from pathlib import Path

import pytest

from loloha.collector.settings import Settings
from loloha.errors import ParameterError


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("LOLOHA_")]:
        monkeypatch.delenv(name)


def test_flags_outrank_variables_which_outrank_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "loloha.toml"
    file.write_text('store = "sqlite:///file.db"\nport = 1\nhost = "10.0.0.1"\nlate_seconds = 7\n')
    monkeypatch.setenv("LOLOHA_PORT", "2")
    monkeypatch.setenv("LOLOHA_HOST", "10.0.0.2")
    found = Settings.read(file, host="10.0.0.3", store=None)
    assert (found.host, found.port, found.store) == ("10.0.0.3", 2, "sqlite:///file.db")
    assert found.terms({"early_seconds": 3}).to_dict() == {
        "late_seconds": 7,
        "early_seconds": 3,
        "minimum_cohort": 100,
        "publish_every": 100,
    }


def test_by_default_only_this_machine_can_connect() -> None:
    found = Settings.read()
    assert found.host == "127.0.0.1"
    assert found.keep_reports is None
    assert found.allowed_origins == []


def test_secrets_are_hidden() -> None:
    found = Settings(admin_key="a secret of the admin")
    assert "a secret" not in repr(found)
    assert "a secret" not in str(found.model_dump())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("port = 70000", "port must be less than or equal to 65535; see"),
        ("surprise = 1", "surprise must be left out"),
        ('admin_key = "short"', "admin_key must have 16"),
        ('admin_key = ""', "admin_key must not be empty"),
        ('allowed_origins = "[https://a.example"', "allowed_origins must be separated by commas"),
        ("allowed_origins = 3", "allowed_origins must be a valid list"),
        *(
            (f'allowed_origins = "https://a.example, {origin}"', "allowed_origins must be origins")
            for origin in (
                "b.example",
                "https://b.example/",
                "https://b.example/p",
                "https://B.example",
                "https://b.example:443",
                "http://b.example:80",
                "https://u@b.example",
                "https://",
            )
        ),
        ('rate_limit = "often"', "rate_limit must be a number and a time"),
        ('trusted_proxies = "notanip"', "trusted_proxies must be IP"),
        ('trusted_proxies = "127.0.0.1, 10.0.0.1/8"', "trusted_proxies must be IP"),
        ("late_seconds = -1", "late_seconds must be"),
        ("port = ", r"config must be TOML, .*loloha\.toml.*Invalid value"),
        ("[[alarms]]\nexpected = 1\n[[alarms]]", r"alarms\[1\]: exactly one of"),
        ("estimates_view = true\nappend_only = 'log'", "settings: append_only must be"),
        ("alarms = [3]", r"alarms\[0\]"),
        ("largest_body = 1", "largest_body must be greater than or equal to 1024"),
    ],
)
def test_bad_settings_are_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "loloha.toml"
    file.write_text(text)
    with pytest.raises(ParameterError, match=says) as caught:
        Settings.read(file)
    assert '"short"' not in str(caught.value)


def test_a_file_of_other_bytes_is_named(tmp_path: Path) -> None:
    file = tmp_path / "loloha.toml"
    file.write_bytes(b"port = '\xff'")
    with pytest.raises(ParameterError, match=r"config must be TOML, .*loloha\.toml"):
        Settings.read(file)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="config must be"):
        Settings.read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example, x-extension://B:443",
        '["https://a.example", "x-extension://B:443"]',
    ],
)
def test_lists_are_plain_text_or_json(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ["https://a.example", "x-extension://B:443"]
    monkeypatch.setenv("LOLOHA_ALLOWED_ORIGINS", text)
    assert Settings.read().allowed_origins == both
    assert Settings.read(allowed_origins=both).allowed_origins == both
    file = tmp_path / "loloha.toml"
    file.write_text("allowed_hosts = 'A.example,b.example'")
    assert Settings.read(file).hosts == {"a.example", "b.example"}


@pytest.mark.parametrize("proxies", ["", "*", "127.0.0.1", "10.0.0.0/8, ::1", "fd00::/8,"])
def test_proxies_are_addresses_or_networks(proxies: str) -> None:
    assert Settings.read(trusted_proxies=proxies).trusted_proxies == proxies
