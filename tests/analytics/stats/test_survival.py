"""Kaplan-Meier against statsmodels, and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.stats.survival import survival

ENDS = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60)


def test_six_ages_by_hand() -> None:
    found = survival(np.array([1.0, 2, 2, 3, 4, 5]), np.array([True, True, False, True, False, True]))
    assert found.age.tolist() == [1, 2, 3, 5]
    assert found.share.tolist() == pytest.approx([5 / 6, 5 / 6 * 4 / 5, 5 / 6 * 4 / 5 * 2 / 3, 0])
    assert found.at_risk.tolist() == [6, 5, 3, 1]
    assert found.quantile(0.5) == 3
    assert found.at([0.5, 2, 9]).tolist() == pytest.approx([1, 2 / 3, 0])


@settings(deadline=None)
@given(ENDS)
def test_statsmodels_gives_the_same(ages: list[tuple[int, bool]]) -> None:
    from statsmodels.duration.survfunc import SurvfuncRight

    age, ended = np.array([float(a) for a, _ in ages]), np.array([e for _, e in ages])
    found = survival(age, ended)
    if not ended.any():
        assert not len(found.age)
        return
    other = SurvfuncRight(age, ended.astype(int))
    kept = np.isin(other.surv_times, found.age)
    assert found.share == pytest.approx(other.surv_prob[kept])
    assert found.at_risk == pytest.approx(other.n_risk[kept])
    inner = (found.share > 0) & (found.share < 1)
    spread = other.surv_prob_se[kept][inner] / found.share[inner] / np.abs(np.log(found.share[inner]))
    assert found.low[inner] == pytest.approx(found.share[inner] ** np.exp(1.959964 * spread), rel=1e-5)
    assert (found.low[inner] <= found.share[inner]).all()
    assert (found.share[inner] <= found.high[inner]).all()
