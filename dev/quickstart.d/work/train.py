"""Stands for a training run: keeps one core busy and some memory filled. train.py MIB SECONDS"""
import sys
import time

mib, seconds = int(sys.argv[1]), float(sys.argv[2])
held = bytearray(b"x") * (mib << 20)
end = time.monotonic() + seconds
epoch = 0
while time.monotonic() < end:
    tick = time.monotonic() + 2
    total = 0
    while time.monotonic() < tick:
        total += sum(held[::4096])
    epoch += 1
    print(f"epoch {epoch}: loss {1 / epoch:.3f}", flush=True)
