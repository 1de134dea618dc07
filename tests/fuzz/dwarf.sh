#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the corpus of fuzz_dwarf: small libraries with DWARF of each kind, alone or with the file they refer to.
# usage: tests/fuzz/dwarf.sh DIRECTORY

set -eu
out=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > a.c <<'SOURCE'
struct pair { int a, b; };
static inline __attribute__((always_inline)) int inner(struct pair p) { volatile int q = p.a; return q * p.b; }
static inline __attribute__((always_inline)) int middle(int n) { return inner((struct pair) { n, n + 1 }); }
int __attribute__((noinline)) outer(int n) { int s = 0; for (int i = 0; i < n; i++) s += middle(i); return s; }
int other(int n) { return n > 9 ? middle(n) : outer(n); }
SOURCE
flags="-O2 -fPIC -shared -nostdlib -Wl,-z,noseparate-code,-z,norelro,--hash-style=gnu -fno-asynchronous-unwind-tables"

# put NAME FILE [OTHER]
put() {
        size=$(stat -c %s "$2")
        {
                printf "$(printf '\\%03o\\%03o\\%03o\\%03o' $((size & 255)) $((size >> 8 & 255)) $((size >> 16 & 255)) 0)"
                cat "$2" ${3:+"$3"}
        } > "$out/$1"
}

for version in 3 4 5; do
        gcc $flags -gdwarf-$version a.c -o gcc$version
        clang $flags -fuse-ld=lld -gdwarf-$version a.c -o clang$version
        put gcc$version gcc$version
        put clang$version clang$version
done
for packing in zlib zlib-gnu zstd; do
        objcopy --compress-debug-sections=$packing gcc5 $packing
        put $packing $packing
done
for version in 4 5; do
        gcc -O2 -fPIC -gdwarf-$version -gsplit-dwarf -c a.c -o a.o
        gcc $flags a.o -o split
        put split$version split a.dwo
        [ $version = 5 ] || { dwp -e split -o split.dwp; put package$version split split.dwp; }
done
clang -O2 -fPIC -gdwarf-5 -gsplit-dwarf -c a.c -o a.o
gcc $flags a.o -o split
llvm-dwp -e split -o split.dwp
put package5 split split.dwp
gcc $flags -gdwarf-4 -DN a.c -o one
sed 's/other/another/' a.c > b.c
gcc $flags -gdwarf-4 b.c -o two
dwz -m shared one two || true
[ ! -e shared ] || put alternate one shared
strip -o stripped gcc4
objcopy -S --keep-symbol=outer gcc4 mini
xz mini
objcopy --add-section .gnu_debugdata=mini.xz stripped with-mini
put mini with-mini
