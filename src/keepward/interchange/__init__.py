"""Interchange: memories in and out of files; every line that comes in goes through the gates."""

from keepward.interchange.exports import (
    plan_restore_export,
    restore_export,
    write_legacy,
    write_notes,
    write_subject,
    write_vault,
)
from keepward.interchange.imports import FORMATS, Format, load
from keepward.interchange.run import Imported

__all__ = [
    "FORMATS",
    "Format",
    "Imported",
    "load",
    "plan_restore_export",
    "restore_export",
    "write_legacy",
    "write_notes",
    "write_subject",
    "write_vault",
]
