"""`tollhouse-plugin build` builds the plugin in this folder, `tollhouse-plugin test` runs its
tests.

`[tool.tollhouse]` in `pyproject.toml` configures both: `wit` is the folder of the contract's WIT,
`world` the world to export, and `module` the plugin.
"""

import json
import shutil
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

SDK = Path(__file__).parent
BUILD = Path("build")
SECTION = b"tollhouse:manifest"


def main() -> None:
    commands = {"build": build, "test": test}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit("usage: tollhouse-plugin build | test")
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["tool"]["tollhouse"]
    commands[sys.argv[1]](project)


def build(project: dict[str, str]) -> None:
    # A separate folder, because componentize-py searches everything beside the SDK.
    path = BUILD / "path"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(SDK, path / SDK.name, ignore=shutil.ignore_patterns("__pycache__", "testing.py", "tool.py"))
    shutil.copy(f"{project['module']}.py", path)
    bare = BUILD / "bare.wasm"
    componentize(project, "componentize", project["module"], "-p", str(path), "-o", str(bare))
    manifest = Path("manifest.json").read_bytes()
    file = Path(f"{json.loads(manifest)['name']}.wasm")
    file.write_bytes(packed(bare.read_bytes(), manifest))
    print(f"{file}: {file.stat().st_size} bytes")


def test(project: dict[str, str]) -> None:
    bindings = BUILD / "bindings"
    shutil.rmtree(bindings, ignore_errors=True)
    componentize(project, "bindings", str(bindings))
    sys.path[:0] = [".", str(bindings)]
    unittest.main(module=None, argv=["tollhouse-plugin", "discover"])


def componentize(project: dict[str, str], *arguments: str) -> None:
    BUILD.mkdir(exist_ok=True)
    program = str(Path(sys.executable).with_name("componentize-py"))
    tool = [program, "-q", "-d", project["wit"], "-w", project["world"]]
    if subprocess.run([*tool, *arguments]).returncode:
        sys.exit(f"componentize-py {arguments[0]} failed; see its output above")


def packed(component: bytes, manifest: bytes) -> bytes:
    """Returns the component with its manifest as the last custom section."""
    section = leb(len(SECTION)) + SECTION + manifest
    return component + b"\0" + leb(len(section)) + section


def leb(number: int) -> bytes:
    """Encodes a number as unsigned LEB128."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + leb(rest) if rest else bytes([low])
