"""A device that is none, for a process of its own: its tensors are in the memory of the host, but torch does not know.

Every operation is done on the host. One that mixes tensors of the device with tensors of the host is an error, as on
any device; but a single number of the host may come along, and there are copies from one to the other.
"""

from __future__ import annotations

import ctypes

from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import torch

_setup_privateuseone_for_python_backend("pretend")
DEVICE = torch.device("pretend", 0)
_OPERATIONS = torch.library.Library("_", "IMPL")
_EXTENSION = 12  # DLPack's number for devices like this one
_ALIVE = []  # all memory there ever was: views do not own theirs

_address_in = ctypes.pythonapi.PyCapsule_GetPointer
_address_in.restype, _address_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _on_device(x):
    """The same memory, as a tensor of the device."""
    if not isinstance(x, torch.Tensor):
        return x
    _ALIVE.append(x)
    capsule = torch.utils.dlpack.to_dlpack(x)
    after_the_pointer = _address_in(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
    ctypes.c_int32.from_address(after_the_pointer).value = _EXTENSION
    return torch.utils.dlpack.from_dlpack(capsule)


def _on_host(x):
    """The same memory, as a tensor of the host."""
    if isinstance(x, torch.device):
        return torch.device("cpu")
    if not isinstance(x, torch.Tensor) or x.device != DEVICE:
        return x
    if not x.numel():
        return torch.empty(x.shape, dtype=x.dtype, device="cpu")
    there = x.untyped_storage()
    here = torch._C._construct_storage_from_data_pointer(there.data_ptr(), torch.device("cpu"), there.nbytes())
    return torch.empty(0, dtype=x.dtype, device="cpu").set_(here, x.storage_offset(), x.shape, x.stride())


def _do(op, *args, **kwargs):
    args_here, kwargs_here = tree_map(_on_host, (args, kwargs))
    if op is torch.ops.aten._copy_from.default:
        source, target, *_ = args_here
        target.copy_(source)
        return args[1]
    for given in tree_leaves((args, kwargs)):
        if isinstance(given, torch.Tensor) and given.is_cpu and given.dim():
            raise RuntimeError(f"{op} has tensors on two devices")
    found = op(*args_here, **kwargs_here)
    if not op._schema.is_mutable:
        return tree_map(_on_device, found)
    changed = kwargs.get("out", args[0])
    if changed.shape != found.shape:  # what was empty has been enlarged
        changed.data = _on_device(found)
    return changed


_OPERATIONS.fallback(_do, "PrivateUse1")
