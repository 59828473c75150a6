"""Quantiles are those of what was observed between two scrapes."""

import pytest

from soak.metrics_page import MetricsPage


def page(*counts: int) -> MetricsPage:
    bounds = ("0.1", "0.2", "+Inf")
    lines = [f'a_bucket{{le="{bound}",x="1"}} {count}' for bound, count in zip(bounds, counts, strict=True)]
    return MetricsPage.read("\n".join(["# TYPE a histogram", *lines, ""]))


def test_a_quantile_leaves_out_what_was_observed_before() -> None:
    """Ten slow ones of an earlier time do not count."""
    before, now = page(0, 0, 10), page(10, 20, 30)

    assert now.quantile_since(before, "a", 0.5) == pytest.approx(0.1)
    assert now.quantile_since(before, "a", 0.75) == pytest.approx(0.15)
    assert now.quantile_since(now, "a", 0.5) is None
    assert page(0, 0, 5).quantile_since(page(0, 0, 0), "a", 0.5) == 0.2


def test_totals_choose_by_labels() -> None:
    """All samples of a name, or those with a label."""
    found = page(1, 2, 3)

    assert found.total("a_bucket") == 6
    assert found.total("a_bucket", le="0.1") == 1
    assert found.total("b") == 0
