"""Costs are drawn with their band, those that drift first, and their drifts shaded."""

import numpy as np

from dashboards.charts.catalog import CHARTS
from dashboards.charts.costs import CostBands
from dashboards.charts.plate import Plate
from dashboards.theme import DARK
from tests.analytics.cost.asked import analysed, hours, noisy


def test_a_drift_is_shaded_in_its_panel_and_its_group_comes_first() -> None:
    costs = noisy(30, 1)[:, 0]
    rising = costs * np.where(np.arange(costs.size) >= 27 * 24, 1.5, 1.0)
    answer = analysed(hours({"a": costs * 5, "b": rising}))
    drawn = CostBands().draw(Plate(answer, answer.frames, DARK))
    assert drawn is not None
    assert drawn.title.startswith("Cost and what is usual")
    names = [note["text"] for note in drawn.figure["layout"]["annotations"]]
    assert names[0].startswith("b")
    assert len(drawn.figure["layout"]["shapes"]) == 1


def test_every_figure_of_cost_draws_or_is_left_out() -> None:
    full, empty = analysed(hours({"a": noisy(30)[:, 0]})), analysed(hours({}))
    for chart in CHARTS["cost"]:
        chart.draw(Plate(full, full.frames, DARK))
        assert chart.draw(Plate(empty, empty.frames, DARK)) is None
