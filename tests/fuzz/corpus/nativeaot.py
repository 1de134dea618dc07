#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the corpus of fuzz_nativeaot, which tests/unit/test_nativeaot.c uses, too: small ELF files with the data of a
.NET NativeAOT executable of each version, and no program.

usage: corpus/nativeaot.py DIRECTORY
"""

import struct
import sys

BASE = 0x10000
NAMES = ("", "__modules", "header", ".rodata", "__managedcode", "__unbox", ".dotnet_eh_table", ".eh_frame", ".rela.dyn",
         ".shstrtab")
METHOD_BYTES, METHODS = 0x20, 10
TYPE, TYPE_REF, TYPE_SPEC, INSTANCE, ARRAY, SZ_ARRAY, BY_REF, POINTER, MODIFIED, FUNCTION, T_VAR, M_VAR, NS, NS_REF, SCOPE = (
    0x3a, 0x3d, 0x3e, 0x3c, 0x01, 0x37, 0x02, 0x32, 0x2d, 0x25, 0x3f, 0x2c, 0x2f, 0x30, 0x38)


def varint(v):
    for n in range(1, 5):
        if v < 1 << 7 * n:
            return (v << n | (1 << n - 1) - 1).to_bytes(n, "little")
    return b"\x0f" + struct.pack("<I", v)


def signed(v):
    return ((v & 0x1fffff) << 3 | 3).to_bytes(3, "little")


class Metadata:
    """Records that refer to each other by name; written again until all offsets are right."""

    def __init__(self, kind_bits):
        self.kind_bits, self.at, self.data = kind_bits, {}, b""
        while True:
            before = dict(self.at)
            self.data = struct.pack("<I", 0xdeaddffd) + self.typed(["scope"])
            self.write()
            if before == self.at:
                break

    def offset(self, name):
        return self.at.get(name, 0x1000) if name else 0

    def record(self, name, data):
        self.at[name] = len(self.data)
        self.data += data

    def h(self, kind, name):
        return varint(self.offset(name) << self.kind_bits | kind) if name else varint(0)

    def t(self, name):
        return varint(self.offset(name))

    def typed(self, names):
        return varint(len(names)) + b"".join(self.t(n) for n in names)

    def string(self, text):
        self.record("s:" + text, varint(len(text.encode())) + text.encode())
        return text

    def type(self, name, space, text, enclosing=None, nested=(), methods=(), generics=()):
        self.string(text)
        self.record(name, varint(1) + self.h(TYPE_REF, "object") + self.t(space) + self.t("s:" + text) + varint(0) +
                    varint(0) + self.t(enclosing) + self.typed(nested) + self.typed(methods) + varint(0) * 3 +
                    self.typed(generics))

    def space(self, name, parent, text, types=(), spaces=()):
        self.string(text)
        self.record(name, parent + self.t("s:" + text) + self.typed(types) + varint(0) + self.typed(spaces))

    def generic(self, name, text):
        self.string(text)
        self.record(name, varint(0) + varint(0) + b"\0" + self.t("s:" + text))

    def signature(self, name, *parameters):
        self.record(name, b"\0" + signed(0) + self.h(TYPE_REF, "object") + varint(len(parameters)) + b"".join(parameters))

    def method(self, name, text, signature, generics=()):
        self.string(text)
        self.record(name, varint(6) + varint(0) + self.t("s:" + text) + self.t(signature) + varint(0) +
                    self.typed(generics))

    def write(self):
        self.string("asm")
        self.record("scope", varint(0) + self.t("s:asm") + varint(0) * 5 + varint(3) + b"key" + varint(0) + self.t("root"))
        self.space("root", self.h(SCOPE, "scope"), "", ["program"], ["a"])
        self.space("a", self.h(NS, "root"), "A", [], ["b"])
        self.space("b", self.h(NS, "a"), "Bé", ["list", "other"])
        self.string("System")
        self.record("system", self.h(SCOPE, "scope") + self.t("s:System"))
        for name, text in (("object", "Object"), ("int", "Int32")):
            self.string(text)
            self.record(name, self.h(NS_REF, "system") + self.t("s:" + text))
        self.string("Part")
        self.record("part", self.h(TYPE_REF, "object") + self.t("s:Part"))
        self.type("program", "root", "Program", methods=["ctor", "main"])
        self.type("list", "b", "List`1", nested=["node"], methods=["ctor", "get"], generics=["T"])
        self.type("node", None, "Node", enclosing="list")
        self.type("other", "b", "Other", methods=["ctor"])
        for text in "TUV":
            self.generic(text, text)
        self.record("instance", self.h(TYPE, "list") + varint(1) + self.h(TYPE_REF, "int"))
        self.record("spec", self.h(INSTANCE, "instance"))
        self.record("ints", self.h(TYPE_REF, "int"))
        self.record("ints&", self.h(SZ_ARRAY, "ints"))
        self.record("part*", self.h(TYPE_REF, "part"))
        self.record("cube", self.h(TYPE, "node") + signed(3))
        self.record("volatile", b"\1" + self.h(TYPE_REF, "object") + self.h(TYPE_SPEC, "spec"))
        self.record("function", self.h(TYPE_REF, "object"))
        for i in (0, 1):
            self.record(f"!{i}", signed(i))
        self.signature("nothing")
        self.signature("all", self.h(T_VAR, "!0"), self.h(BY_REF, "ints&"), self.h(POINTER, "part*"),
                       self.h(ARRAY, "cube"), self.h(MODIFIED, "volatile"), self.h(FUNCTION, "function"))
        self.signature("mapped", self.h(M_VAR, "!0"), self.h(M_VAR, "!1"))
        for text in ("Add", "Map", "Bytes"):
            self.string(text)
        self.record("names", varint(2) + self.h(0x1a, "s:U") + self.h(0x1a, "s:V"))
        self.method("ctor", ".ctor", "nothing")
        self.method("main", "<Main>$", "nothing")
        self.method("get", "Get", "mapped", ["U", "V"])


def stack_map(m, vaddr, code, token_shift, hidden=True):
    """Methods 0 to 4, the first without a name, not in order."""
    entries = [
        (0x10 if hidden else 0x00, b"", 0),
        (0x07, token(m, TYPE, "list", token_shift) + m.t("s:Add") + m.t("all"), 3),
        (0x0a, m.t("s:Map") + m.t("mapped") + m.t("names"), 1),
        (0x05, token(m, TYPE, "node", token_shift) + m.t("nothing"), 4),
        (0x07, token(m, TYPE_REF, "part", token_shift) + m.t("s:Bytes") + m.t("nothing"), 2),
    ]
    data = struct.pack("<i", len(entries))
    for command, parts, method in entries:
        data += bytes([command]) + parts
        data += struct.pack("<i", code + method * METHOD_BYTES - (vaddr + len(data)))
    return data


def token(m, kind, name, shift):
    return struct.pack("<I", kind << shift | m.offset(name))


def hashtable(entries):
    """Two buckets, offsets of two bytes; all entries behind them."""
    halves = [entries[0::2], entries[1::2]]
    sizes = [4 * len(h) for h in halves]
    starts = [6, 6 + sizes[0], 6 + sizes[0] + sizes[1]]
    at = 1 + starts[2]
    table, rest = b"", b""
    for half, start in zip(halves, starts):
        for i, entry in enumerate(half):
            table += b"\0" + signed(at + len(rest) - (1 + start + 4 * i + 1))
            rest += entry
    return bytes([1 << 2 | 1]) + struct.pack("<3H", *starts) + table + rest


def file_of(major, minor, relocated):
    ten = major == 16
    m = Metadata(7 if ten else 8)
    shift = 25 if ten else 24
    code, size = 0x4000, METHODS * METHOD_BYTES
    tables = 0x9000  # of methods: addresses that nothing reads
    fixups = [tables, tables + 8, tables + 16, tables + 24, code + 5 * METHOD_BYTES, code + 6 * METHOD_BYTES, 0x5000,
              code + 8 * METHOD_BYTES]
    pieces, at = {}, 0x1000
    for name in ("metadata", "stack", "invoke", "fixups", "types"):
        if name == "metadata":
            data = m.data
        elif name == "stack":
            data = stack_map(m, BASE + at, BASE + code, shift, major > 9)
        elif name == "fixups":
            data = b"".join(struct.pack("<i", a + (BASE if a >= code and a < 0x6000 else 0) - (BASE + at + 4 * i))
                            for i, a in enumerate(fixups))
        elif name == "types":
            data = hashtable([varint(i) + varint(m.offset(t) | TYPE << shift) for i, t in enumerate(("program", "list"))])
        else:
            flags = 0x20 | (0 if ten else 4)
            data = hashtable([varint(flags) + m.t(method) + varint(table) + varint(entry) for method, table, entry in
                              # constructors of two types, the main program, behind a stub, of a type that is not told
                              (("ctor", 0, 4), ("ctor", 1, 5), ("get", 2, 6), ("ctor", 3, 7))])
        pieces[name] = (at, data)
        at += len(data) + 15 & ~15

    image = bytearray(0x6200)

    def put(offset, data):
        image[offset:offset + len(data)] = data

    for offset, data in pieces.values():
        put(offset, data)
    header, rows = 0x800, ((313, "metadata"), (327, "stack"), (306, "invoke"), (308, "fixups"), (301, "types"))
    relocations = [(0x700, header)]
    put(header, struct.pack("<IHHIHBB", 0x525452, major, minor, 0, len(rows), 24, 1))
    for i, (number, name) in enumerate(rows):
        offset, data = pieces[name]
        row = header + 16 + 24 * i
        put(row, struct.pack("<ii", number, 1))
        relocations += [(row + 8, offset), (row + 16, offset + len(data))]
    if relocated:
        rela = b"".join(struct.pack("<QQq", BASE + a, 8, BASE + v) for a, v in relocations)
    else:
        rela = b""
        for a, v in relocations:
            put(a, struct.pack("<Q", BASE + v))

    # Methods 0 … 9; number 9 is a handler of number 3.
    language = 0x5800
    frames = struct.pack("<II", 20, 0) + b"\1zLR\0\1\x78\x10\2\x1b\x1b\x0c\7\x08\x90\1"
    frames = struct.pack("<I", len(frames) - 4) + frames[4:]
    put(language, b"\0")
    put(language + 16, b"\1" + struct.pack("<ii", -17, 6 * METHOD_BYTES))
    for i in range(METHODS):
        fde = 0x5c00 + len(frames)
        frames += struct.pack("<IIiIBi", 20, len(frames) + 4, code + i * METHOD_BYTES - (fde + 8), METHOD_BYTES, 4,
                              language + (16 if i == 9 else 0) - (fde + 17)) + b"\0\0\0"
    frames += struct.pack("<I", 0)
    put(0x5000, b"\x48\x83\xc7\x08\xe9" + struct.pack("<i", code + 7 * METHOD_BYTES - 0x5009))
    put(0x5c00, frames)

    strings = b"".join(n.encode() + b"\0" for n in NAMES)
    spans = [(0, 0), (0x700, 8), (header, 0x200), (0x1000, at - 0x1000), (code, size), (0x5000, 16), (language, 32),
             (0x5c00, len(frames)), (len(image), len(rela)), (len(image) + len(rela), len(strings))]
    body = bytes(image) + rela + strings
    sections, name_at = b"", 0
    for name, (offset, length) in zip(NAMES, spans):
        kind = 0 if not name else 3 if name == ".shstrtab" else 4 if name == ".rela.dyn" else 1
        sections += struct.pack("<IIQQQQIIQQ", name_at, kind, 2 if kind in (1, 4) else 0,
                                BASE + offset if kind in (1, 4) else 0, offset, length, 0, 0, 1, 24 if kind == 4 else 0)
        name_at += len(name) + 1
    elf = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, BASE, 64, len(body), 0, 64, 56, 1, 64, len(NAMES),
                      len(NAMES) - 1)
    elf += struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, len(body), len(body), 0x1000)
    return elf + body[len(elf):] + sections


for title, version in (("net8", (9, 1, False)), ("net9", (10, 1, True)), ("net10", (16, 0, True)),
                       ("net10-fixed", (16, 0, False))):
    with open(f"{sys.argv[1]}/{title}", "wb") as out:
        out.write(file_of(*version))
