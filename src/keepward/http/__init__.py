"""The HTTP API."""

from keepward.http.server import create_app
from keepward.http.serving import ServerOptions

__all__ = ["ServerOptions", "create_app"]
