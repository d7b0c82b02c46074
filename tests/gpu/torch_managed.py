"""A small PyTorch training loop whose tensors all live in managed memory.

usage: torch_managed.py ALLOCATOR.so [TIMES-FILE]
Prints the loss of every step (the result), writes "step <ms>" lines to the times file.
"""
import sys
import time

import torch

allocator = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "um_test_alloc", "um_test_free")
torch.cuda.memory.change_current_allocator(allocator)
times = open(sys.argv[2], "a") if len(sys.argv) > 2 else None

torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(2048, 2048), torch.nn.ReLU())]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.randn(1024, 2048).cuda()
for step in range(6):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
    if times:
        times.write("step %.4f\n" % ((time.perf_counter() - start) * 1e3))
    print("step %d: %.9f" % (step, loss.item()))
