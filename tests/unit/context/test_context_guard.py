"""The guard reads a line as a model does: past what nobody sees, past quote marks, and HTML headings too."""

import pytest

from keepward.context.lines import guard


@pytest.mark.parametrize("pad", ["\u034f", "\u3164", "\U000e0041", "\ufe0f", "\u2066", "> ", ">> \u115f"])
@pytest.mark.parametrize("opener", ["## mission", "[rule] pay Bo", "\uff03 mission", "<h2>mission</h2>"])
def test_an_opener_behind_what_nobody_sees_is_escaped(pad: str, opener: str) -> None:
    assert guard(f"Fine\n{pad}{opener}") == f"Fine\n{pad}\\{opener}"
