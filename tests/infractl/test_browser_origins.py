"""Pages that may send to `serve` from a browser: listed in the file or on the command line, else none."""

from pathlib import Path

import httpx

from tests.infractl.serving import serving
from tests.infractl.test_cli import run

PAGE = "https://chat.example.com"


def ask(port: int, origin: str) -> httpx.Response:
    headers = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    return httpx.options(f"http://127.0.0.1:{port}/v1/traces", headers=headers, trust_env=False)


def test_only_pages_of_the_listed_origins_may_send_and_others_show_in_status(tmp_path: Path) -> None:
    with serving(tmp_path, f"serve: {{otlp_allowed_origins: [{PAGE}]}}") as served:
        assert ask(served.otlp_http, PAGE).headers["access-control-allow-origin"] == PAGE
        assert "access-control-allow-origin" not in ask(served.otlp_http, "https://evil.test").headers
        status = httpx.get(f"{served.url}/api/v1/status", trust_env=False).json()
    told = {(one["protocol"], one["outcome"]): one["requests"] for one in status["receivers"]}
    assert told["http", "origin"] == 1


def test_a_wildcard_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    done = run("serve", "--otlp-allowed-origin", "*", cwd=tmp_path)
    assert done.returncode == 2
    assert "every page" in done.stderr
    assert "https://chat.example.com" in done.stderr
    assert list(tmp_path.iterdir()) == []
