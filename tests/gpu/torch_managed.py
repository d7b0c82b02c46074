#!/usr/bin/env python3
"""A PyTorch training loop whose tensors all live in managed memory.

usage: torch_managed.py ALLOCATOR.so [--layers N] [--width N] [--batch N] [--adam] [--steps N] [--times FILE]
                                     [--variant plain|hand]
Prints the loss of every step (the result), and at the end a checksum of the gradients; writes "step <ms>" lines to
FILE, and "total <ms>", of all steps but the first. hand: the allocator prefetches what it allocates.
"""
import argparse
import os
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("allocator")
for name, value in (("layers", 4), ("width", 2048), ("batch", 1024), ("steps", 6)):
    parser.add_argument("--" + name, type=int, default=value)
parser.add_argument("--adam", action="store_true")
parser.add_argument("--times")
parser.add_argument("--variant", choices=("plain", "hand"), default="plain")
args = parser.parse_args()
if args.variant == "hand":
    os.environ["HAND"] = "1"

allocator = torch.cuda.memory.CUDAPluggableAllocator(args.allocator, "um_test_alloc", "um_test_free")
torch.cuda.memory.change_current_allocator(allocator)
times = open(args.times, "a") if args.times else None
total = 0

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(*[m for _ in range(args.layers)
                              for m in (torch.nn.Linear(args.width, args.width), torch.nn.ReLU())]).cuda()
optimizer = (torch.optim.Adam if args.adam else torch.optim.SGD)(model.parameters(), lr=1e-3)
data = torch.randn(args.batch, args.width).cuda()
for step in range(args.steps):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - start) * 1e3
    total += ms if step else 0
    if times:
        times.write("step %.4f\n" % ms)
    print("step %d: %.9f" % (step, loss.item()))
if times:
    times.write("total %.4f\n" % total)
for p in model.parameters():
    print("gradient: %.9e" % p.grad.double().sum().item())
