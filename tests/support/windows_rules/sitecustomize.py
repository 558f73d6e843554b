"""Python as on Windows, for each process that has this folder in PYTHONPATH.

* The code of Keepward finds no module, function or socket that only Unix has.
* A file that a process has open can be neither replaced, renamed nor removed; nor a folder with an open file.
* A locked file cannot be opened by others, and a rename does not replace.
* Folders cannot be opened. `os.write` and `os.read` change line ends unless a file was opened with `O_BINARY`.
* Names have none of `<>:"|?*`, and end neither in a dot nor in a space.

What asks `os.name` or `sys.platform` gets the answer of this system, as other packages need it.
"""

# ruff: noqa: PTH100, PTH112, PTH113, PTH119, PTH115, PTH118, PTH120, PTH208
import builtins
import errno
import fcntl
import io
import os
import signal
import socket
import sys

MISSING_MODULES = ("fcntl", "grp", "posix_ipc", "pty", "pwd", "resource", "syslog", "termios", "tty")
MISSING_FUNCTIONS = [
    "chown",
    "chroot",
    "fchdir",
    "fchmod",
    "fchown",
    "fdatasync",
    "fork",
    "forkpty",
    "geteuid",
    "getegid",
    "getgid",
    "getgroups",
    "getpgid",
    "getuid",
    "lchown",
    "mkfifo",
    "mknod",
    "nice",
    "pipe2",
    "posix_fadvise",
    "pread",
    "preadv",
    "pwrite",
    "pwritev",
    "register_at_fork",
    "sched_getaffinity",
    "sched_setaffinity",
    "set_blocking",
    "setsid",
    "setuid",
    "sync",
    "uname",
    "O_CLOEXEC",
    "O_DIRECTORY",
    "O_DSYNC",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "O_SYNC",
]
BINARY = 0x8000
_PROC = "/proc"
#: Where the rules for files apply; Python and its packages live by the rules of their own system.
_ROOT = os.environ.get("WINDOWS_RULES_ROOT", "")
_FORBIDDEN = set('<>:"|?*\\')
_text_handles: set[int] = set()
_real = {
    name: getattr(os, name)
    for name in ["open", "write", "read", "close", "rename", "replace", "remove", "unlink", "mkdir", "rmdir"]
}
_real_open, _real_flock, _real_import = io.open, fcntl.flock, builtins.__import__


def _is_ruled(path):
    try:
        return bool(_ROOT) and isinstance(path, (str, bytes, os.PathLike)) and _absolute(path).startswith(_ROOT)
    except (OSError, ValueError):
        return False


def _absolute(path):
    return os.path.abspath(os.fsdecode(path))


def _sharing_violation(path):
    fault = PermissionError(
        errno.EACCES, "The process cannot access the file because it is used by another", os.fspath(path)
    )
    fault.winerror = 32
    return fault


def _check_name(path):
    for part in _absolute(path)[len(_ROOT) :].split("/"):
        if (
            _FORBIDDEN.intersection(part)
            or part != part.rstrip(". ")
            or part.split(".")[0].upper() in {"CON", "NUL", "AUX"}
        ):
            raise OSError(
                errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect", os.fspath(path)
            )


def _is_open(path):
    """Whether a process has a file open, or a file in a folder."""
    path = os.path.join(os.path.realpath(os.path.dirname(_absolute(path))), os.path.basename(_absolute(path)))
    for process in filter(str.isdigit, os.listdir(_PROC)):
        folder = f"{_PROC}/{process}/fd"
        try:
            for each in os.listdir(folder):
                target = os.readlink(f"{folder}/{each}")
                if target == path or target.startswith(f"{path}/"):
                    return True
        except OSError:
            continue
    return False


def _refuse_if_locked(path):
    """Refuse a file that another has locked. A real system refuses only to read it, which comes after."""
    handle = _real["open"](path, os.O_RDONLY)
    try:
        _real_flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _sharing_violation(path) from None
    finally:
        _real["close"](handle)


def _opened(path, flags, mode=0o777, *, dir_fd=None):
    if _is_ruled(path):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        _check_name(path)
    handle = _real["open"](path, flags & ~BINARY, mode, dir_fd=dir_fd)
    if _is_ruled(path) and not flags & BINARY:
        _text_handles.add(handle)
    return handle


def _open_file(file, mode="r", *args, **more):
    if _is_ruled(file):
        _check_name(file)
        if os.path.isfile(file) and "x" not in mode and not _asks_for_lock():
            _refuse_if_locked(file)
    return _real_open(file, mode, *args, **more)


def _asks_for_lock():
    """Whether the caller locks the file before it reads it."""
    frame = sys._getframe(2)
    return frame.f_code.co_name == "_read_locked"


def _write(handle, data):
    if handle in _text_handles:
        _real["write"](handle, bytes(data).replace(b"\n", b"\r\n"))
        return len(data)
    return _real["write"](handle, data)


def _read(handle, size):
    data = _real["read"](handle, size)
    return data.partition(b"\x1a")[0].replace(b"\r\n", b"\n") if handle in _text_handles else data


def _close(handle):
    _text_handles.discard(handle)
    _real["close"](handle)


def _moving(name, *, replaces):
    def move(source, target, **more):
        if _is_ruled(source) or _is_ruled(target):
            _check_name(target)
            if os.path.lexists(target) and not replaces:
                raise FileExistsError(
                    errno.EEXIST, "Cannot create a file when that file already exists", os.fspath(target)
                )
            for each in (source, target):
                if _is_open(each):
                    raise _sharing_violation(each)
        return _real[name](source, target, **more)

    return move


def _removing(name):
    def remove(path, **more):
        if _is_ruled(path) and "dir_fd" not in more and _is_open(path):
            raise _sharing_violation(path)
        return _real[name](path, **more)

    return remove


def _make(path, mode=0o777, **more):
    if _is_ruled(path):
        _check_name(path)
    return _real["mkdir"](path, mode, **more)


def _hide(module, names):
    """Remove names from a module for the code of Keepward; other packages are made for the system that they are on."""
    hidden = {name: module.__dict__.pop(name) for name in names if name in module.__dict__}

    def find(name):
        if name not in hidden or _is_ours(sys._getframe(1).f_globals):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return hidden[name]

    module.__getattr__ = find


def _is_ours(names):
    return names.get("__name__", "").partition(".")[0] == "keepward"


def _import(name, names=None, *args, **more):
    if name in MISSING_MODULES and _is_ours(names or {}):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _real_import(name, names, *args, **more)


_hide(os, MISSING_FUNCTIONS)
_hide(
    signal,
    [
        "SIGALRM",
        "SIGCHLD",
        "SIGHUP",
        "SIGKILL",
        "SIGPIPE",
        "SIGQUIT",
        "SIGUSR1",
        "SIGUSR2",
        "alarm",
        "setitimer",
        "pthread_sigmask",
    ],
)
_real_pair, _pair_family = socket.socketpair, socket.AF_UNIX
_hide(socket, ["AF_UNIX"])
socket.socketpair = lambda family=_pair_family, *args: _real_pair(family, *args)
builtins.__import__ = _import
os.O_BINARY = BINARY
os.open, os.write, os.read, os.close = _opened, _write, _read, _close
os.rename, os.replace = _moving("rename", replaces=False), _moving("replace", replaces=True)
os.remove, os.unlink, os.rmdir = _removing("remove"), _removing("unlink"), _removing("rmdir")
os.mkdir = _make
io.open = builtins.open = _open_file
