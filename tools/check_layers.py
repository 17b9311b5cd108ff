#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that points up the layers, and on a public header that includes src/."""
import pathlib
import re
import sys

LAYERS = ("base tensor attention ir jacobian ops graph orders accumulation passes backends "
          "frontends tasks driver agent cli").split()
ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.MULTILINE)


def faults():
    for path in sorted((ROOT / "include").rglob("*.h")):
        for target in INCLUDE.findall(path.read_text()):
            yield f"{path.relative_to(ROOT)} includes \"{target}\": public headers include <loipe/...> only"
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".inc", ".def"}:
            continue
        layer = path.relative_to(ROOT / "src").parts[0]
        for target in INCLUDE.findall(path.read_text()):
            other = target.split("/")[0]
            if path.name.endswith("_test.cc") and other == "support":
                continue
            if other not in LAYERS or layer not in LAYERS:
                yield f"{path.relative_to(ROOT)} includes \"{target}\": not a layer of the list in tools/check_layers.py"
            elif LAYERS.index(other) > LAYERS.index(layer) and not path.name.endswith("_test.cc"):
                yield f"{path.relative_to(ROOT)} includes \"{target}\": {other} lies above {layer}"


found = list(faults())
print("\n".join(found) or "layers hold")
sys.exit(bool(found))
