"""The HTTP API."""

from keepward.http.app import create_app
from keepward.http.options import ServerOptions

__all__ = ["ServerOptions", "create_app"]
