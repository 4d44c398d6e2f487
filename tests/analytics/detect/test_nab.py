"""The Numenta Anomaly Benchmark: our scorer gives the published scores, and the shipped detector keeps its place."""

from pathlib import Path

import numpy as np
import pytest

from analytics.detect.novelty import NOTICE
from benchmarks.accuracy.nab import best, ours, published, read
from benchmarks.accuracy.nab_scorer import PROFILES, Labelled, normalised, sigmoid, weigh

PUBLISHED = {
    "ARTime": (75.35, 66.24, 81.00),
    "numenta": (68.09, 61.30, 72.55),
    "contextOSE": (65.24, 61.18, 68.62),
    "randomCutForest": (45.39, 33.55, 54.87),
}
"""Of the 35 series that the shared folder holds, at the best threshold per profile."""


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    if not (shared / "data" / "nab" / "series.parquet").exists():
        pytest.skip("no NAB series")
    return shared / "data" / "nab"


@pytest.mark.parametrize("detector", PUBLISHED)
def test_the_scorer_gives_the_published_scores(folder: Path, detector: str) -> None:
    scores = published(folder, detector)
    if not scores:
        pytest.skip(f"no scores of {detector}")
    weighed = {one.name: weigh(one) for one in read(folder)}
    assert best(scores, weighed) == pytest.approx(PUBLISHED[detector], abs=0.05)


def test_the_shipped_configuration_and_threshold_score_above_the_published_ones(folder: Path) -> None:
    series = read(folder)
    weighed = {one.name: weigh(one) for one in series}
    found = ours(series)
    at_one = [float(normalised(found, weighed, profile, np.array([NOTICE]))[0]) for profile in PROFILES]
    assert at_one[0] >= 76
    assert at_one[1] >= 67
    assert at_one[2] >= 81


def test_silence_scores_zero_and_an_alert_at_each_first_point_a_hundred() -> None:
    one = Labelled("x", np.zeros(1000), [(400, 450), (700, 760)])
    perfect = np.zeros(1000)
    perfect[[400, 700]] = 1.0
    for profile in PROFILES:
        found = normalised({"x": perfect}, {"x": weigh(one)}, profile, np.array([0.5, 2.0]))
        assert found == pytest.approx([100.0, 0.0])


def test_an_alert_in_probation_counts_for_nothing_and_one_far_outside_costs_its_weight() -> None:
    one = Labelled("x", np.zeros(1000), [(400, 450)])
    early, outside = np.zeros(1000), np.zeros(1000)
    early[149], outside[150] = 1.0, 1.0
    score = [
        normalised({"x": scores}, {"x": weigh(one)}, "standard", np.array([0.5]))[0] for scores in (early, outside)
    ]
    assert score == pytest.approx([0.0, -100 * 0.11 / 2])


def test_the_sigmoid_is_zero_at_the_end_of_a_window() -> None:
    assert sigmoid(np.array([0.0])) == pytest.approx([0.0])
    assert sigmoid(np.array([5.0])) == pytest.approx([-1.0])
