"""Bodies drawn from the descriptions of the HTTP API, without a server: the same draws in every run."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from keepward.api import OPERATIONS
from keepward.http.inputs import _with_integers, body_of, read_object
from support.openapi import described

schemathesis = pytest.importorskip("schemathesis")
pytestmark = pytest.mark.proof

DESCRIBED = {
    each.ok().definition.raw.get("operationId"): each.ok()
    for each in schemathesis.openapi.from_dict(described()).get_all_operations()
}
BODIES = {name: model for name, each in OPERATIONS.items() if (model := body_of(each)) is not None}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_fits_its_description_is_read(name):
    @settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(DESCRIBED[name].as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
    def read(case):
        # Some calls may come without one, or with null. An unusable body raises.
        if case.body not in (None, schemathesis.core.NOT_SET):
            read_object(BODIES[name], _with_integers(json.loads(json.dumps(case.body))))

    read()
