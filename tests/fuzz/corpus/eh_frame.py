#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the corpus of fuzz_eh_frame: one small section, registers and a stack for each kind of rule.

usage: corpus/eh_frame.py DIRECTORY
"""

import os
import struct
import sys

RBP, RSP, RIP = 6, 7, 16
SP = 0x7FFF0000


def cie(augmentation=b"zR", encoding=3):
    body = struct.pack("<IB", 0, 1) + augmentation + b"\0" + bytes([1, 0x78, RIP, 1, encoding])
    body += bytes([0x0C, RSP, 8, 0x80 | RIP, 1])
    return struct.pack("<I", len(body)) + body


def fde(at, start, program, size=0x100):
    body = struct.pack("<III", at + 4, start, size) + b"\0" + bytes(program)
    return struct.pack("<I", len(body)) + body


def case(programs, augmentation=b"zR", registers=(), words=(), options=0):
    section = cie(augmentation)
    for start, program in programs:
        section += fde(len(section), start, program)
    section += b"\0\0\0\0"
    values = [0] * 17
    values[RSP], values[RIP] = SP, 0x2010
    for number, value in registers:
        values[number] = value
    return (struct.pack("<BH", options, len(section)) + section + struct.pack("<17Q", *values) +
            struct.pack(f"<{len(words)}Q", *words))


ROOT = (0x3000, [0x07, RIP])
CASES = {
    "prologue": case([(0x2000, [0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, RBP, 0x0A, 0x50, 0x0C, RSP, 8, 0x44, 0x0B]), ROOT],
                     registers=[(RBP, SP + 16)], words=[0, 0, SP + 64, 0x3010]),
    "plt": case([(0x2000, [0x0F, 11, 0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22]), ROOT],
                words=[0x3010]),
    "drap": case([(0x2000, [0x0F, 3, 0x76, 0x78, 0x06, 0x10, RBP, 2, 0x76, 0]), ROOT],
                 registers=[(RBP, SP + 32)], words=[0, 0, 0, SP + 80, 7, 0, 0, 0, 0, 0x3010]),
    "signal": case([(0x2000, [0x0F, 3, 0x77, 16, 0x06, 0x10, RIP, 2, 0x77, 24, 0x16, 3, 2, 0x77, 8])], b"zRS",
                   words=[0, 1, SP + 64, 0x2080, 0, 0, 0, 0, 0]),
    "registers": case([(0x2000, [0x09, RIP, 5, 0x08, 3, 0x05, 12, 2, 0x11, 13, 0x7F, 0x14, 14, 1, 0x15, 15, 0x7F,
                                 0x2E, 8, 0x2F, RBP, 2, 0x02, 9, 0x0E, 16, 0x03, 1, 0, 0x04, 1, 0, 0, 0, 0x06, RBP]), ROOT],
                      registers=[(5, 0x3010)]),
    "terminated": case([(0x2000, [0x00]), ROOT], words=[0x2020, 0x2030, 0x3001], options=2),
    "debug-frame": case([(0x2000, [0x00])], options=1),
}

for name, data in CASES.items():
    with open(os.path.join(sys.argv[1], name), "wb") as out:
        out.write(data)
