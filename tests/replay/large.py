# SPDX-License-Identifier: GPL-2.0-or-later
"""A description with 100,000 samples, for the time it takes to write them: many functions, stacks 40 deep."""
import random

random.seed(1)
print("start unit=large.service until=1000s begin=2ms hz=99 type=notify")
print("process 9 begin=3ms exec=9ms comm=large exe=/opt/large/large slot=ExecStart")
print("module /opt/large/large symbols=symtab")
for stack in range(4000):
    print(f"stack s{stack}")
    for depth in range(40, 0, -1):
        print(f" frame \"ns::type<int, char>::function_{depth}_{random.randrange(1 + depth // 3)}(int, char const*)\" /opt/large/large")
for stack in range(4000):
    kind = "user" if stack % 3 else "kernel call=openat"
    print(f"samples 9 {kind} stack=s{stack} count=25 from={10 + stack}ms to={100 + stack}ms comm=large")
