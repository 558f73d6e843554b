"""The reference of the HTTP API: what is documented is there, and what is there is documented."""

from __future__ import annotations

import json
import re

import pytest
from http_fixtures import HttpTestServer

from keepward.http.telemetry import OPERATIONS


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = HttpTestServer(tmp_path_factory.mktemp("reference"))
    yield world
    world.memory.close()


def routes(world):
    """Return (method, path) of every route that takes part in the API."""
    return {
        (method, route.path_format)
        for route in world.app.routes
        if getattr(route, "include_in_schema", False)
        for method in route.methods
    }


@pytest.mark.promise("Z47")
def test_every_route_is_documented_and_every_documented_route_exists(world, reference):
    page = reference.complete_page("http.md")
    assert set(re.findall(r"^### ([A-Z]+) (/\S*)$", page, re.MULTILINE)) == routes(world)


def test_every_operation_with_a_span_is_described(world):
    described = {each["operationId"] for path in world.api["paths"].values() for each in path.values()}
    assert OPERATIONS.keys() <= described


def test_every_openapi_link_names_an_operation_and_its_parameters(world):
    operations = {each["operationId"]: each for path in world.api["paths"].values() for each in path.values()}
    wrong = [
        (name, link["operationId"])
        for name, each in operations.items()
        for answer in each["responses"].values()
        for link in answer.get("links", {}).values()
        if not set(link["parameters"])
        <= {each.get("name") for each in operations[link["operationId"]].get("parameters", ())}
    ]
    assert wrong == []


def test_every_openapi_link_points_at_a_key_of_its_answer(world):
    schemas = world.api["components"]["schemas"]

    def leads_somewhere(schema, keys):
        if not keys:
            return True
        if "$ref" in schema:
            return leads_somewhere(schemas[schema["$ref"].rpartition("/")[2]], keys)
        if "anyOf" in schema:
            return any(leads_somewhere(each, keys) for each in schema["anyOf"])
        inner = schema.get("items") if keys[0].isdigit() else schema.get("properties", {}).get(keys[0])
        return inner is not None and leads_somewhere(inner, keys[1:])

    wrong = [
        (each["operationId"], place)
        for path in world.api["paths"].values()
        for each in path.values()
        for answer in each["responses"].values()
        for link in answer.get("links", {}).values()
        for place in {**link["parameters"], **link.get("requestBody", {})}.values()
        if place.startswith("$response.body#/")
        and not leads_somewhere(answer["content"]["application/json"]["schema"], place.split("/")[1:])
    ]
    assert wrong == []


def test_every_reference_inside_the_description_leads_somewhere(world):
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(world.api)))
    assert names <= set(world.api["components"]["schemas"])


def test_every_error_that_is_described_is_a_problem(world):
    kinds = {
        kind
        for path in world.api["paths"].values()
        for each in path.values()
        for status, answer in each["responses"].items()
        if status >= "400"
        for kind in answer["content"]
    }
    assert kinds == {"application/problem+json"}


def test_every_parameter_and_field_of_a_request_is_described(world):
    shared = world.api["components"]["parameters"]
    operations = [each for path in world.api["paths"].values() for each in path.values()]
    named = [
        (each["operationId"], shared.get(given.get("$ref", "").rpartition("/")[2], given))
        for each in operations
        for given in each.get("parameters", ())
    ]
    assert [(name, each["name"]) for name, each in named if not each.get("description")] == []


def test_a_response_has_every_key_of_its_type(world):
    schemas, found = world.api["components"]["schemas"], set[str]()
    answers = [each["responses"] for path in world.api["paths"].values() for each in path.values()]
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(answers)))
    while named - found:
        found |= named
        named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps([schemas[name] for name in found])))
    optional = {name: schemas[name].get("properties", {}).keys() - schemas[name].get("required", ()) for name in found}
    # Only what a caller asks for explains a receipt, and only some problems have further keys.
    assert {name: keys for name, keys in optional.items() if keys} == {"AnyReceipt": {"explanation"}}
    # A default is for those who make a value, not for those who read it.
    values = [(name, each) for name in found for each in schemas[name].get("properties", {}).values()]
    assert [name for name, each in values if "default" in each] == []
