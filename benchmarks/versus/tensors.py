# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files as numpy arrays."""

import json
import struct

import numpy as np

DTYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def read(path):
    """(tensors by name, metadata)"""
    with open(path, "rb") as file:
        raw = file.read()
    begin = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        flat = np.frombuffer(raw[begin + first : begin + last], DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata=None):
    header, blobs, offset = {"__metadata__": metadata or {}}, [], 0
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": NAMES[np.asarray(array).dtype],
            "shape": list(np.shape(array)),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
