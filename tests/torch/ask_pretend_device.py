"""A process of its own: every question of tensors on another device, against the same on the host."""

import all_answers
from pretend_device import DEVICE

import torch

for kind in all_answers.KINDS:
    scores, *rest = all_answers.problem(kind)
    scores.requires_grad_()
    there = scores.detach().to(DEVICE).requires_grad_()
    expected = all_answers.answers(kind, scores, *rest)
    found = all_answers.answers(kind, there, *(None if x is None else x.to(DEVICE) for x in rest))
    for on_host, on_device in (
        (expected, found),
        (all_answers.gradients(expected, scores), all_answers.gradients(found, there)),
    ):
        assert on_host.keys() == on_device.keys()
        for name, right in on_host.items():
            assert on_device[name].device == DEVICE, (kind, name)
            torch.testing.assert_close(on_device[name].cpu(), right, rtol=1e-12, atol=1e-12, equal_nan=True)
print("all the same")
