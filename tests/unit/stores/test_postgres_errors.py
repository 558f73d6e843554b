"""What an error of the driver becomes."""

import pytest

psycopg = pytest.importorskip("psycopg")


def test_a_wrong_parameter_of_a_statement_says_nothing_of_the_address():
    from keepward.storage.postgres_connection import translate_error

    said = str(translate_error(psycopg.ProgrammingError("query parameter missing: base")))
    assert ("address" in said, "keepward verify" in said) == (False, True)
