"""A PyTorch training loop whose tensors all live in managed memory.

usage: torch_managed.py ALLOCATOR.so [--layers N] [--width N] [--batch N] [--adam] [--steps N] [--times FILE]
Prints the loss of every step (the result), and at the end a checksum of the gradients; writes "step <ms>" lines to FILE.
"""
import argparse
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("allocator")
for name, value in (("layers", 4), ("width", 2048), ("batch", 1024), ("steps", 6)):
    parser.add_argument("--" + name, type=int, default=value)
parser.add_argument("--adam", action="store_true")
parser.add_argument("--times")
args = parser.parse_args()

allocator = torch.cuda.memory.CUDAPluggableAllocator(args.allocator, "um_test_alloc", "um_test_free")
torch.cuda.memory.change_current_allocator(allocator)
times = open(args.times, "a") if args.times else None

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
    if times:
        times.write("step %.4f\n" % ((time.perf_counter() - start) * 1e3))
    print("step %d: %.9f" % (step, loss.item()))
for p in model.parameters():
    print("gradient: %.9e" % p.grad.double().sum().item())
