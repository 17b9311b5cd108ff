#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Post-norm models with loss, output and all gradients by PyTorch's autograd in float64.

python make_bert.py          writes bert_*.safetensors beside itself (numpy and torch must be there)
"""

import pathlib
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[2] / "benchmarks" / "versus"))
from tensors import write  # noqa: E402

TOKENS, WIDTH, HEADS, HIDDEN, CLASSES = 24, 8, 2, 16, 11


def weights(layers):
    tensors = {}
    shapes = {"Q": (WIDTH, WIDTH), "K": (WIDTH, WIDTH), "V": (WIDTH, WIDTH), "O": (WIDTH, WIDTH),
              "1": (WIDTH, HIDDEN), "2": (HIDDEN, WIDTH)}
    for layer in range(layers):
        at = f"layer{layer}."
        for name, shape in shapes.items():
            tensors[at + "W_" + name] = 0.5 * torch.randn(shape)
            tensors[at + "b_" + name] = 0.1 * torch.randn(shape[1])
        for norm in ("ln1", "ln2"):
            tensors[at + norm + "_gamma"] = 1 + 0.1 * torch.randn(WIDTH)
            tensors[at + norm + "_beta"] = 0.1 * torch.randn(WIDTH)
    return tensors


def output(x, tensors, layers, causal, activation, eps):
    activations = {"gelu_erf": F.gelu, "gelu": lambda t: F.gelu(t, approximate="tanh")}
    for layer in range(layers):
        w = lambda name: tensors[f"layer{layer}.{name}"]
        affine = lambda t, name: t @ w("W_" + name) + w("b_" + name)
        norm = lambda t, name: F.layer_norm(t, (WIDTH,), w(name + "_gamma"), w(name + "_beta"), eps)
        q, k, v = (affine(x, name).view(TOKENS, HEADS, -1).transpose(0, 1) for name in "QKV")
        s = q @ k.transpose(1, 2) * (WIDTH // HEADS) ** -0.5
        if causal:
            s = s.masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), -torch.inf)
        o = (s.softmax(-1) @ v).transpose(0, 1).reshape(TOKENS, WIDTH)
        x = norm(x + affine(o, "O"), "ln1")
        x = norm(x + affine(activations[activation](affine(x, "1")), "2"), "ln2")
    return x


def case(name, layers, causal, loss, metadata):
    torch.manual_seed(layers)
    torch.set_default_dtype(torch.float64)
    x, tensors = torch.randn(TOKENS, WIDTH), weights(layers)
    if loss == "cross_entropy":
        tensors["W_voc"] = torch.randn(WIDTH, CLASSES)
        target = torch.randint(CLASSES, (TOKENS,))
    else:
        target = torch.randn(TOKENS, WIDTH)
    for tensor in (x, *tensors.values()):
        tensor.requires_grad_()
    y = output(x, tensors, layers, causal, metadata.get("activation", "gelu"), float(metadata.get("norm_eps", 1e-12)))
    value = F.cross_entropy(y @ tensors["W_voc"], target) if "W_voc" in tensors else 0.5 * ((y - target) ** 2).sum()
    value.backward()
    arrays = {"X": x, "target": target, "loss": value.reshape(1), "output": y, "grad.X": x.grad}
    for key, tensor in tensors.items():
        arrays |= {"weight." + key: tensor, "grad." + key: tensor.grad}
    metadata = {"arch": "bert", "layers": str(layers), "heads": str(HEADS), "causal": str(int(causal)), "loss": loss,
                **metadata}
    write(HERE / f"{name}.safetensors", {key: t.detach().numpy() for key, t in arrays.items()}, metadata)


case("bert_m2_full_sq_d8_h2", 2, False, "square", {"activation": "gelu_erf"})
case("bert_m1_causal_ce_d8_h2", 1, True, "cross_entropy", {"norm_eps": "0.01"})
