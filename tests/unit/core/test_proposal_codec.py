"""Waiting proposals come back from JSON as they went in, and damaged ones do not."""

from __future__ import annotations

import json

import pytest

from keepward.core.proposal import proposal_from_dict, proposal_to_dict
from keepward.errors import Tampered
from support.factories import RecordFactory


def _item():
    make = RecordFactory()
    return make.waiting(
        "ada", [make.record("grüß 茶"), make.record("two")], decided_by="operator:o", decided_at=make.now
    )


def test_a_proposal_comes_back_as_it_went_in():
    assert proposal_from_dict(json.loads(json.dumps(proposal_to_dict(_item())))) == _item()


@pytest.mark.parametrize("name", ["v", "steps", "proposer", "base", "created_at", "reasons"])
def test_a_proposal_that_lacks_a_field_is_tampered(name):
    fields = proposal_to_dict(_item())
    del fields[name]
    with pytest.raises(Tampered):
        proposal_from_dict(fields)
