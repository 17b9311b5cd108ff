#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exact causal attention, forward and backward: loipe bench attention beside PyTorch's fused kernel.

python attention.py [--n 4096,16384] [--sizes 8x64,12x32,4x16,8x8] [--threads 2] [--rounds 3] [--repetitions 3]

Proves first, at 512 tokens of each size, that both sides compute the same (against Loipe in float64, relative to
the largest entry, 1e-4), then lets them run in turns, each a process of its own. Medians of runs on normal inputs
in f32 after a first one that does not count; of the rounds, each side's best, as other work on the machine only adds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from tensors import read, write
from transformer import LOIPE


def torch_run(arrays, threads, repetitions):
    """Results of the last run and the seconds of each, [forward, backward]."""
    import torch

    torch.set_num_threads(threads)
    q, k, v, g = (torch.from_numpy(array.copy())[None] for array in arrays)
    for tensor in (q, k, v):
        tensor.requires_grad_()
    times = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        middle = time.perf_counter()
        grads = torch.autograd.grad(o, (q, k, v), g)
        times.append([middle - start, time.perf_counter() - middle])
    return dict(zip(("O", "dQ", "dK", "dV"), [t.detach()[0].numpy() for t in (o, *grads)])), times


def random_inputs(n, heads, head_size):
    rng = np.random.default_rng(1)
    return [rng.standard_normal((heads, n, head_size), dtype=np.float32) for _ in range(4)]


def torch_side(n, heads, head_size, threads, repetitions):
    _, times = torch_run(random_inputs(n, heads, head_size), threads, repetitions)
    print(json.dumps(list(np.median(times[1:], axis=0))))


def prove(heads, head_size, threads, folder):
    arrays = random_inputs(512, heads, head_size)
    path, out = os.path.join(folder, "in"), os.path.join(folder, "out")
    write(path, dict(zip("QKVG", arrays)), {"causal": "1"})
    results = {"torch": torch_run(arrays, threads, 0)[0]}
    for dtype in ("f32", "f64"):
        subprocess.run([LOIPE, "attention", "--inputs", path, "--out", out, "--dtype", dtype], check=True,
                       stdout=subprocess.DEVNULL)
        results[dtype] = read(out)[0]
    for side in ("torch", "f32"):
        for name in ("O", "dQ", "dK", "dV"):
            expected = results["f64"][name]
            wrong = np.abs(results[side][name] - expected).max() / np.abs(expected).max()
            if not wrong < 1e-4:
                sys.exit(f"{name} of {side} is off by {wrong:.1e} at {heads} heads of {head_size}")


def loipe(n, heads, head_size, options):
    command = [LOIPE, "bench", "attention", "--causal", "--json", "--n", n, "--heads", heads, "--head-size", head_size,
               "--threads", options.threads, "--repetitions", options.repetitions]
    row = json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL).stdout)["rows"][0]
    return [row["forward_ms"] / 1e3, row["backward_ms"] / 1e3]


def torch(n, heads, head_size, options):
    command = [sys.executable, __file__, "--torch-side", n, heads, head_size, options.threads, options.repetitions]
    return json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", default="4096,16384")
    parser.add_argument("--sizes", default="8x64,12x32,4x16,8x8", help="HEADSxHEADSIZE, separated by commas")
    for name, value in (("threads", 2), ("rounds", 3), ("repetitions", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    options = parser.parse_args()
    sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
    print(f"{options.threads} threads, f32, causal; seconds forward + backward (GFLOP/s)")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            prove(*size, options.threads, folder)
    for n in map(int, options.n.split(",")):
        for heads, head_size in sizes:
            best = {}
            for _ in range(options.rounds):
                for side in (loipe, torch):
                    times = side(n, heads, head_size, options)
                    best[side.__name__] = min(best.get(side.__name__, times), times, key=sum)
            work = 7 * n * n * head_size * heads / 1e9
            text = "   ".join(f"{name} {t[0]:.4f} + {t[1]:.4f} ({work / sum(t):.0f})" for name, t in best.items())
            print(f"n {n:6} heads {heads:3} of {head_size:3}   {text}   "
                  f"{sum(best['torch']) / sum(best['loipe']):.2f} x torch", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--torch-side":
        torch_side(*map(int, sys.argv[2:]))
    else:
        main()
