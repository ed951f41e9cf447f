"""Mathematics: what the docstrings of sympy and networkx explain, without their examples."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from components import fetch
from components.corpus.readers.order import by_hash
from components.corpus.record import Record
from components.packages import PACKAGES, Package

_NAMES = ("sympy", "networkx")

# Sections that are code, links or lists of names; the rest explains.
_DROPPED = re.compile(r"examples?|references|see also|usage|tests?|doctest|authors?", re.IGNORECASE)
_UNDERLINE = re.compile(r"\s*([=\-~^*])\1{2,}\s*")
_ROLE = re.compile(r":[a-z:]+:`~?\.?([^`<]+?)(?:\s*<[^`]*>)?`")
_DIRECTIVE = re.compile(r"^\s*\.\. (?!math)[\w-]+::.*$", re.MULTILINE)

_Documented = (ast.Module, ast.ClassDef, ast.FunctionDef)


def read() -> Iterator[Record]:
    """A document for each module, class or function that is explained at some length."""
    files = [
        (path.relative_to(root).as_posix(), path, package)
        for package in [PACKAGES[name] for name in _NAMES]
        for root in [fetch.package(package.name)]
        for path in root.rglob("*.py")
        if "tests" not in path.parts
    ]
    for locator, path, package in by_hash(files, lambda file: file[0]):
        yield from _of_file(path, locator, package)


def _of_file(path: Path, locator: str, package: Package) -> Iterator[Record]:
    source = path.read_text()
    if '"""' not in source:
        return
    tree = ast.parse(source)
    for node in (tree, *tree.body):
        docstring = ast.get_docstring(node) if isinstance(node, _Documented) else None
        if docstring:
            name = "module" if isinstance(node, ast.Module) else getattr(node, "name", "")
            yield Record(
                source=package.name,
                source_version=package.version,
                locator=f"{locator}:{name}",
                domain="mathematics",
                licence=package.licence,
                title=f"{locator.removesuffix('.py').replace('/', '.')}: {name}",
                text=explained(docstring),
            )


def explained(docstring: str) -> str:
    """The prose of a docstring: no doctests, no sections of examples, roles as plain words."""
    kept: list[str] = []
    dropping = in_doctest = False
    lines = [*inspect.cleandoc(docstring).splitlines(), ""]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.strip() and _UNDERLINE.fullmatch(below) and not _UNDERLINE.fullmatch(line):
            dropping = bool(_DROPPED.fullmatch(line.strip()))
        in_doctest = line.lstrip().startswith(">>>") or (in_doctest and bool(line.strip()))
        if not (dropping or in_doctest or _UNDERLINE.fullmatch(line)):
            kept.append(line)
    prose = _ROLE.sub(r"\1", "\n".join(kept))
    return _DIRECTIVE.sub("", prose).replace("``", "`").strip()
