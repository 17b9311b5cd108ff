#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loss and all gradients of a pre-norm transformer: loipe transformer beside PyTorch.

python transformer.py [--tokens 1024,4096] [--layers 6] [--width 128] [--heads 8] [--vocabulary 256]
                      [--threads 2] [--rounds 3] [--repetitions 3] [--memory-limit BYTES]

Proves first that both sides compute the same (every gradient against Loipe in float64, relative to its
largest entry, 1e-4), then lets them run in turns, each a process of its own. Medians of single runs after
a first one that does not count; memory is the growth of the process beyond its inputs.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from tensors import read, write

LOIPE = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "loipe"


def model(tokens, layers, width, heads, vocabulary):
    """A model at random weights of the usual sizes; logits have a spread of about 1."""
    rng = np.random.default_rng(1)
    normal = lambda *shape, size: (size * rng.standard_normal(shape)).astype(np.float32)
    tensors = {"X": normal(tokens, width, size=1), "target": rng.integers(0, vocabulary, tokens)}
    matrices = {"W_Q": (width, width), "W_K": (width, width), "W_V": (width, width), "W_O": (width, width),
                "W_1": (width, 4 * width), "W_2": (4 * width, width)}
    for layer in range(layers):
        at = f"weight.layer{layer}."
        for name, shape in matrices.items():
            tensors[at + name] = normal(*shape, size=shape[0] ** -0.5)
            tensors[at + name.replace("W", "b")] = normal(shape[1], size=0.02)
        for norm in ("ln1", "ln2"):
            tensors[at + norm + "_gamma"] = 1 + normal(width, size=0.05)
            tensors[at + norm + "_beta"] = normal(width, size=0.05)
    tensors["weight.lnf_gamma"] = 1 + normal(width, size=0.05)
    tensors["weight.lnf_beta"] = normal(width, size=0.05)
    tensors["weight.W_voc"] = normal(width, vocabulary, size=0.05)
    metadata = {"arch": "gpt", "layers": str(layers), "heads": str(heads), "causal": "1", "loss": "cross_entropy"}
    return tensors, metadata


def torch_side(path, out, threads, repetitions):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    arrays, metadata = read(path)
    layers, heads = int(metadata["layers"]), int(metadata["heads"])
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    target = tensors.pop("target")
    for tensor in tensors.values():
        tensor.requires_grad_()
    width = tensors["X"].shape[1]

    def loss():
        x = tensors["X"]
        for layer in range(layers):
            w = lambda name: tensors[f"weight.layer{layer}.{name}"]
            norm = lambda x, name: F.layer_norm(x, (width,), w(name + "_gamma"), w(name + "_beta"))
            y = norm(x, "ln1")
            split = lambda s: (y @ w("W_" + s) + w("b_" + s)).view(-1, heads, width // heads).transpose(0, 1)[None]
            o = F.scaled_dot_product_attention(split("Q"), split("K"), split("V"), is_causal=True)
            x = x + o[0].transpose(0, 1).reshape(-1, width) @ w("W_O") + w("b_O")
            hidden = F.gelu(norm(x, "ln2") @ w("W_1") + w("b_1"), approximate="tanh")
            x = x + hidden @ w("W_2") + w("b_2")
        x = F.layer_norm(x, (width,), tensors["weight.lnf_gamma"], tensors["weight.lnf_beta"])
        return F.cross_entropy(x @ tensors["weight.W_voc"], target)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(repetitions + 1):
        for tensor in tensors.values():
            tensor.grad = None
        start = time.perf_counter()
        value = loss()
        value.backward()
        times.append(time.perf_counter() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if out:
        results = {"loss": value.detach().numpy().reshape(1)}
        for name, tensor in tensors.items():
            results["grad." + name.removeprefix("weight.")] = tensor.grad.numpy()
        write(out, results, {})
    print(json.dumps({"seconds": float(np.median(times[1:] or times)), "bytes": grown * 1024}))


def loipe(path, out, threads, repetitions, *more):
    command = [str(LOIPE), "transformer", "--inputs", path, "--out", out, "--threads", str(threads), "--json",
               "--repetitions", str(repetitions + 1), *more]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    inputs = os.path.getsize(path)
    return {"seconds": result["seconds"], "bytes": result["peak_bytes"] - inputs}


def torch(path, out, threads, repetitions):
    command = [sys.executable, __file__, "--torch-side", path, out, str(threads), str(repetitions)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def deviation(path, reference):
    """The largest over all arrays, each relative to its largest entry (or 1/1000 of the largest of all)."""
    expected, _ = read(reference)
    actual, _ = read(path)
    names = [name for name in actual if name == "loss" or name.startswith("grad.")]
    floor = 1e-3 * max(np.abs(expected[name]).max() for name in names)
    return max(np.abs(actual[name] - expected[name]).max() / max(np.abs(expected[name]).max(), floor) for name in names)


def compare(options, tokens, folder):
    at = lambda name: os.path.join(folder, name)
    write(at("model"), *model(tokens, options.layers, options.width, options.heads, options.vocabulary))
    sides = {"loipe": lambda out, n: loipe(at("model"), out, options.threads, n)}
    if options.memory_limit:
        sides[f"loipe, {options.memory_limit}"] = lambda out, n: loipe(
            at("model"), out, options.threads, n, "--memory-limit", options.memory_limit)
    if not options.alone:
        sides["torch"] = lambda out, n: torch(at("model"), out, options.threads, n)
    loipe(at("model"), at("reference"), options.threads, 0, "--dtype", "f64")
    wrong = {}
    for name, run in sides.items():
        run(at("out"), 0)
        wrong[name] = deviation(at("out"), at("reference"))
        if not wrong[name] < 1e-4:
            sys.exit(f"{name} is off by {wrong[name]:.1e} at {tokens} tokens")
    rows = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, run in sides.items():
            rows[name].append(run(at("out"), options.repetitions))
    base = np.median([row["seconds"] for row in rows["loipe"]])
    for name, list_of_rows in rows.items():
        seconds = np.median([row["seconds"] for row in list_of_rows])
        memory = max(row["bytes"] for row in list_of_rows) / 2**20
        print(f"{tokens:8,} tokens  {name:16} {seconds:9.3f} s  {memory:8.1f} MiB  max error {wrong[name]:.1e}  "
              f"{seconds / base:5.2f} x loipe", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", default="1024,4096")
    for name, value in (("layers", 6), ("width", 128), ("heads", 8), ("vocabulary", 256), ("threads", 2),
                        ("rounds", 3), ("repetitions", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--memory-limit")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"{cpu}, {options.threads} threads; {options.layers} layers, width {options.width}, {options.heads} heads, f32")
    with tempfile.TemporaryDirectory() as folder:
        for tokens in options.tokens.split(","):
            compare(options, int(tokens), folder)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--torch-side":
        torch_side(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
