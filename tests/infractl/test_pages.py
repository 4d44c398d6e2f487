"""The dashboard of the real process over the sample data, in real Chromium."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dashboards.catalog import PAGES
from tests.dashboards.browser import CHROMIUM, look
from tests.infractl.serving import answers, command_line, environment, wait_for
from tests.rules.servers import free_port


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A running `infractl demo`: its address and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    port = free_port()
    with (folder / "out.txt").open("w") as out:
        words = command_line("demo", "--data", str(folder / "data"), "--port", str(port))
        process = subprocess.Popen(words, cwd=folder, env=environment(), stdout=out, stderr=out)
        url = f"http://127.0.0.1:{port}"
        try:
            wait_for(lambda: answers(url + "/healthz") or process.poll() is not None, 240)
            assert process.poll() is None, (folder / "out.txt").read_text()
            yield url, (folder / "out.txt").read_text()
        finally:
            process.terminate()
            process.wait(20)


def test_the_demo_prints_findings_and_which_incidents_they_match(demo: tuple[str, str]):
    said = demo[1]
    assert "CRITICAL" in said
    for incident in (
        "sim-1 burst",
        "sim-2 kv_exhaustion",
        "sim-3 pcie_contention",
        "sim-4 error_storm",
        "real-1 burst",
    ):
        assert f"found   {incident}" in said
    assert "0 findings match no incident" in said


def test_the_metrics_of_the_demo_are_published(demo: tuple[str, str]):
    page = httpx.get(demo[0] + "/metrics", trust_env=False).text
    assert 'infractl_p99_baseline_seconds{service="vllm-tiny",target="ttft_s"}' in page
    assert 'infractl_p99_driver_share_ratio{driver="requests_waiting",service="chat-api",target="ttft_s"}' in page
    assert 'infractl_analysis_last_success_timestamp_seconds{analysis="overview"}' in page


@pytest.mark.skipif(not CHROMIUM.exists(), reason="apt install chromium")
def test_every_page_opens_clean_in_chromium_with_its_figures(demo: tuple[str, str], tmp_path: Path):
    result = httpx.get(demo[0] + "/api/v1/analyses/overview", trust_env=False).json()
    trace_id = result["findings"][0]["evidence"]["trace_ids"][0]
    for theme in ("dark", "light"):
        assert look(demo[0], tmp_path, trace_id, theme) == []
    seen = {p.name for p in tmp_path.iterdir()}
    listed = [page.title.lower().replace(" ", "-") for page in PAGES if page.listed]
    assert {f"{name}-{theme}.png" for name in listed for theme in ("dark", "light")} <= seen
    assert {f"trace-{theme}.png" for theme in ("dark", "light")} <= seen
