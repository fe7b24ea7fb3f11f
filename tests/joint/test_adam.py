"""Our Adam is that of ``torch.optim``."""

import torch

from precisionnet.joint.adam import Adam


def test_equal_to_torch_optim() -> None:
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(3, 4, generator=generator, dtype=torch.float64), torch.randn(5, generator=generator)]
    ours = [value.clone().requires_grad_() for value in start]
    theirs = [value.clone().requires_grad_() for value in start]
    adam, witness = Adam.of(ours), torch.optim.Adam(theirs, lr=0.01)
    for step in range(20):
        for leaves in (ours, theirs):
            sum((leaf.sin() * leaf).sum() * (step + 1) for leaf in leaves).backward()
        adam.step(0.01)
        witness.step()
        witness.zero_grad()
    assert all(leaf.grad is None for leaf in ours)
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-5, atol=1e-6)


def test_moments_are_carried_on_in_a_copy() -> None:
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    first = Adam.of([leaf])
    first.step(0.1)
    second = Adam.of([leaf], first)
    leaf.grad = torch.ones(2)
    second.step(0.1)
    assert (first.steps, second.steps) == (1, 2)
    assert not torch.equal(first.second[0], second.second[0])
