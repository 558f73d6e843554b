"""Folders of a user, from environment variables alone, as texts and without imports, for commands that start fast.

Late imports: not every system has it, a program that does not need it starts faster.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def config_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of keys and recorded heads, which may not exist.

    `KEEPWARD_HOME`, else `keepward` in an absolute `XDG_CONFIG_HOME`, else in `.config` of the home
    folder. A user without a home folder gets `.keepward` in the working folder.
    """
    if environ.get("KEEPWARD_HOME"):
        return os.path.expanduser(environ["KEEPWARD_HOME"])
    # The XDG specification ignores a relative path.
    if os.path.isabs(environ.get("XDG_CONFIG_HOME", "")):
        return os.path.join(environ["XDG_CONFIG_HOME"], "keepward")
    # On Windows only some shells set the variable, so it is ignored there.
    own = (environ.get("HOME") if os.name == "posix" else None) or _login_folder()
    return os.path.join(os.getcwd(), ".keepward") if own == "~" else os.path.join(own, ".config", "keepward")


def _login_folder() -> str:
    """Return the home folder of this login in the system's user database, ignoring HOME; ``~`` without one."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir or "~"
    except (ImportError, KeyError):
        return "~" if os.name == "posix" and os.environ.get("HOME") == "" else os.path.expanduser("~")


def data_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's store, models and index files, which may not exist.

    It is `KEEPWARD_DATA`, or the platform's.
    """
    if environ.get("KEEPWARD_DATA"):
        return os.path.abspath(os.path.expanduser(environ["KEEPWARD_DATA"]))
    from platformdirs import user_data_dir

    found = user_data_dir("keepward", appauthor=False)
    # A user without a home folder has none.
    return found if os.path.isabs(found) else config_folder(environ)


def runtime_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of files that last as long as a login: the system's, or one in `home`."""
    given = environ.get("XDG_RUNTIME_DIR", "")
    return os.path.join(given, "keepward") if os.path.isabs(given) else os.path.join(config_folder(environ), "run")
