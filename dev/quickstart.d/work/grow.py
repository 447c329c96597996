"""Allocates memory step by step: grow.py MIB SECONDS."""
import sys
import time

mib, seconds = int(sys.argv[1]), float(sys.argv[2])
held = []
for step in range(mib // 20):
    held.append(bytearray(b"x") * (20 << 20))
    print(f"holding {20 * (step + 1)} MiB", flush=True)
    time.sleep(seconds / (mib // 20))
