"""One rank of a job: NCCL's collectives by PyTorch on the first GPU, of each the result checked.

    collectives.py RANK RANKS MEETING-FILE
"""

import sys

import torch
import torch.distributed as dist

GPU = "cuda:0"


def numbers(count):
    return torch.arange(count, device=GPU, dtype=torch.int64)


def check_all(rank, ranks, count):
    """How many numbers came out wrong."""
    wrong = 0

    def check(got, want):
        nonlocal wrong
        wrong += int((got != want).sum().item())

    summed = numbers(count) * (rank + 1)
    dist.all_reduce(summed)
    check(summed, numbers(count) * (ranks * (ranks + 1) // 2))

    last = torch.full((count,), rank, device=GPU, dtype=torch.int64)
    dist.broadcast(last, src=ranks - 1)
    check(last, torch.full_like(last, ranks - 1))

    gathered = [torch.empty_like(last) for _ in range(ranks)]
    dist.all_gather(gathered, numbers(count) + rank)
    for peer, part in enumerate(gathered):
        check(part, numbers(count) + peer)

    reduced = torch.empty_like(last)
    dist.reduce_scatter_tensor(reduced, numbers(count * ranks) + rank)
    check(reduced, (numbers(count) + count * rank) * ranks + ranks * (ranks - 1) // 2)

    exchanged = torch.empty(count * ranks, device=GPU, dtype=torch.int64)
    dist.all_to_all_single(exchanged, numbers(count * ranks) + 7 * rank)
    for peer in range(ranks):
        check(exchanged[peer * count:(peer + 1) * count], numbers(count) + count * rank + 7 * peer)

    if rank == 0:
        dist.send(numbers(count) + 5, 1)
    elif rank == 1:
        dist.recv(last, 0)
        check(last, numbers(count) + 5)
    return wrong


def main():
    rank, ranks = int(sys.argv[1]), int(sys.argv[2])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", init_method="file://" + sys.argv[3], rank=rank, world_size=ranks)
    wrong = sum(check_all(rank, ranks, count) for count in (1, 1000, 262_144, 3_000_001))
    torch.cuda.synchronize()
    print(f"rank {rank}: {wrong} wrong", flush=True)
    dist.destroy_process_group()


main()
