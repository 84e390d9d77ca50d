"""Damage to a folder, as disks, editors and strangers do it: to its files, bytes, values and tensors."""

import json
import lzma
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

# What may stand in the place of a value of TOML or JSON.
TOML = ("-1", "0", "1", "0.5", "-0.5", "15000", "1e308", "nan", "inf", "-inf", "1" + "0" * 30, "true", "false", '""')
TOML += ('"x"', "[]", "{}", '["a", "b"]', "''", '"' + "a" * 5000 + '"', "", '"None"', "2000-01-01", '"\\u0000"', "-")
JSON: tuple[Any, ...] = (-1, 0, 1, 0.5, 1e308, float("nan"), float("inf"), 10**30, 15000, True, None, "", "x", [], {})
JSON += ([1, "a"], {"a": 1}, [[]], "\x00", "../../x", [None], {"": None}, -(10**9), 3.0, "1e5")


def mutate(folder: Path, rng: random.Random) -> str:
    """Damage one file of a folder; says what was done."""
    file = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    kinds: list[Callable[[Path, random.Random], str]] = [_in_bytes]
    if file.suffix == ".safetensors":
        kinds += [_in_tensors] * 2 + [_in_header]
    elif file.suffix == ".toml":
        kinds += [_in_toml] * 5
    elif file.suffix in (".json", ".jsonl") or file.name == "labels.txt":
        kinds += [_in_json] * 5
    elif file.suffix == ".pack":
        kinds += [_in_pack] * 6
    if file.suffix in (".txt", ".jsonl", ".toml"):
        kinds += [_in_lines]
    done = rng.choice(kinds)(file, rng)
    return f"{file.relative_to(folder)}: {done}"


def _in_bytes(file: Path, rng: random.Random) -> str:
    content = bytearray(file.read_bytes())
    what = rng.choice("flip cut empty delete noise garbage folder pipe zero other".split())
    if what == "flip":
        for _ in range(rng.choice((1, 1, 3, 20))):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
        file.write_bytes(content)
    elif what == "cut":
        file.write_bytes(content[: rng.randrange(len(content) + 1)])
    elif what == "empty":
        file.write_bytes(b"")
    elif what == "noise":
        file.write_bytes(rng.randbytes(rng.choice((1, 100, 5000))))
    elif what == "garbage":
        file.write_bytes(bytes(content) + rng.randbytes(50))
    elif what == "other":
        others = sorted(path for path in file.parent.iterdir() if path.is_file())
        file.write_bytes(rng.choice(others).read_bytes())
    else:
        file.unlink()
        if what == "folder":
            file.mkdir()
        elif what == "pipe":
            os.mkfifo(file)
        elif what == "zero":
            file.symlink_to("/dev/zero")
    return what


def _in_lines(file: Path, rng: random.Random) -> str:
    lines = file.read_bytes().split(b"\n")
    at = rng.randrange(len(lines))
    what = rng.choice(("twice", "gone", "swapped", "empty", "long"))
    if what == "twice":
        lines.insert(at, lines[at])
    elif what == "gone":
        del lines[at]
    elif what == "swapped":
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif what == "empty":
        lines[at] = b""
    else:
        lines[at] = lines[at] * 2000
    file.write_bytes(b"\n".join(lines))
    return f"line {at + 1} {what}"


def _in_toml(file: Path, rng: random.Random) -> str:
    lines = file.read_text().split("\n")
    settings = [at for at, line in enumerate(lines) if " = " in line]
    at = rng.choice(settings)
    name, _, _ = lines[at].partition(" = ")
    lines[at] = f"{name} = {rng.choice(TOML)}"
    file.write_text("\n".join(lines))
    return lines[at][:80]


def _in_json(file: Path, rng: random.Random) -> str:
    text = file.read_text()
    lined = file.suffix != ".json"
    lines = text.split("\n") if lined else [text]
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if not filled:
        return "nothing"
    at = rng.choice(filled)
    value, done = _changed(json.loads(lines[at]), rng)
    lines[at] = json.dumps(value)
    file.write_text("\n".join(lines))
    return f"{f'line {at + 1}, ' if lined else ''}{done}"


def _changed(value: Any, rng: random.Random, path: str = "") -> tuple[Any, str]:
    """A value of JSON with one part of it changed or gone."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.15:
        new = rng.choice(JSON)
        return new, f"{path or 'all'} = {new!r:.60}"
    key = rng.choice(list(value) if isinstance(value, dict) else list(range(len(value))))
    if rng.random() < 0.15:
        copy = dict(value) if isinstance(value, dict) else list(value)
        del copy[key]
        return copy, f"{path}.{key} gone"
    inner, done = _changed(value[key], rng, f"{path}.{key}")
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = inner
    return copy, done


def _in_pack(file: Path, rng: random.Random) -> str:
    """A packed corpus under a sound compression: another header, other numbers, more or less of them."""
    content = bytearray(lzma.decompress(file.read_bytes()))
    start = content.index(b"\n") + 1
    size = int.from_bytes(content[start : start + 8], "little")
    head, body = content[start + 8 : start + 8 + size], content[start + 8 + size :]
    what = rng.choice("header header header numbers numbers cut more size".split())
    done = ""
    if what == "header":
        value, done = _changed(json.loads(bytes(head)), rng)
        head = bytearray(json.dumps(value).encode())
        size = len(head)
    elif what == "numbers":
        for _ in range(rng.choice((1, 5, 50))):
            body[rng.randrange(len(body))] = rng.randrange(256)
    elif what == "cut":
        del body[rng.randrange(len(body)) :]
    elif what == "more":
        body += rng.randbytes(rng.choice((1, 4000)))
    else:
        size = rng.choice((0, 1, size - 1, size + 1, 1 << 40, (1 << 64) - 1))
    file.write_bytes(lzma.compress(bytes(content[:start]) + size.to_bytes(8, "little") + head + body, preset=0))
    return f"{what} {done}"


def _in_header(file: Path, rng: random.Random) -> str:
    """Another number in the header of a safetensors file."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, data = content[8 : 8 + size].decode(), content[8 + size :]
    numbers = list(re.finditer(r"\d+", header))
    if not numbers:
        return "nothing"
    chosen = rng.choice(numbers)
    new = rng.choice(("0", "1", "15000", "99999999999", "-1", '"a"', "null"))
    header = header[: chosen.start()] + new + header[chosen.end() :]
    if rng.random() < 0.5:
        size = len(header.encode())
    file.write_bytes(size.to_bytes(8, "little") + header.encode() + data)
    return f"header {chosen[0]} -> {new}"


def _in_tensors(file: Path, rng: random.Random) -> str:
    """A well-formed safetensors file with other tensors."""
    tensors = load_file(file)
    with safe_open(file, "pt") as opened:
        metadata = opened.metadata()
    name = rng.choice(sorted(tensors))
    what = rng.choice("gone renamed longer wider flat scalar empty nan inf type ints extra unmarked".split())
    tensor = tensors[name]
    if what in ("gone", "renamed"):
        del tensors[name]
        if what == "renamed":
            tensors[f"{name}x"] = tensor
    elif what == "longer":
        tensors[name] = torch.cat([tensor.reshape(-1, *tensor.shape[1:])] * 2)
    elif what == "wider":
        tensors[name] = torch.cat([tensor.unsqueeze(0)] * 2, -1)[0] if tensor.dim() else tensor.repeat(3)
    elif what in ("flat", "scalar", "empty"):
        tensors[name] = {"flat": tensor.flatten(), "scalar": torch.tensor(1.0), "empty": tensor.flatten()[:0]}[what]
    elif what in ("nan", "inf"):
        tensors[name] = torch.full_like(tensor.float(), float(what))
    elif what in ("type", "ints"):
        tensors[name] = tensor.double() if what == "type" else tensor.to(torch.int64)
    elif what == "extra":
        tensors["extra"] = torch.zeros(3)
    else:
        metadata = None
    save_file({key: value.contiguous().clone() for key, value in tensors.items()}, file, metadata)
    return f"{name} {what}"


def restore(damaged: Path, whole: Path) -> None:
    """The folder as it was."""
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(whole, damaged)
