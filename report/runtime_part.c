/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/runtime_part.h"

#include <stdbool.h>

#include "common/macro.h"

enum part {
        PART_ALLOCATION,
        PART_BARRIER,
        PART_GC,
        PART_PINVOKE,
        PART_EXCEPTIONS,
        PART_DISPATCH,
        PART_CASTS,
        PART_TYPE_LOADER,
        PART_STUB,
};

static const struct runtime_part parts[] = {
        [PART_ALLOCATION] = { "[allocation]", "allocation of objects (.NET runtime)" },
        [PART_BARRIER] = { "[write barrier]", "write barriers of the garbage collector (.NET runtime)" },
        [PART_GC] = { "[GC]", "garbage collection (.NET runtime)" },
        [PART_PINVOKE] = { "[P/Invoke]", "calls of native functions (.NET runtime)" },
        [PART_EXCEPTIONS] = { "[exceptions]", "throwing and catching of exceptions (.NET runtime)" },
        [PART_DISPATCH] = { "[interface dispatch]", "calls through interfaces (.NET runtime)" },
        [PART_CASTS] = { "[type checks]", "casts and type checks (.NET runtime)" },
        [PART_TYPE_LOADER] = { "[type loader]", "building of types at run time (.NET runtime)" },
        [PART_STUB] = { "[managed stub]", "small functions that the .NET compiler makes" },
};

/* The first that fits counts: longer ones of the same begin come first. C functions of the runtime and C++ ones
 * of natively compiled programs and of libcoreclr.so; managed ones are in C#. */
static const struct {
        const char *prefix;
        enum part part;
} prefixes[] = {
        { "RhpNew", PART_ALLOCATION },
        { "RhpGcAlloc", PART_ALLOCATION },
        { "RhNew", PART_ALLOCATION },
        { "RhBox", PART_ALLOCATION },
        { "JIT_New", PART_ALLOCATION },
        { "JIT_Box", PART_ALLOCATION },
        { "System.Runtime.RuntimeExports.RhNew", PART_ALLOCATION },
        { "System.Runtime.RuntimeExports.RhBox", PART_ALLOCATION },
        { "System.Runtime.InternalCalls.RhpNew", PART_ALLOCATION },
        { "RhpAssignRef", PART_BARRIER },
        { "RhpCheckedAssignRef", PART_BARRIER },
        { "RhpByRefAssignRef", PART_BARRIER },
        { "RhpCheckedXchg", PART_BARRIER },
        { "RhpCheckedLockCmpXchg", PART_BARRIER },
        { "RhBulkMoveWithWriteBarrier", PART_BARRIER },
        { "JIT_WriteBarrier", PART_BARRIER },
        { "JIT_CheckedWriteBarrier", PART_BARRIER },
        { "JIT_ByRefWriteBarrier", PART_BARRIER },
        { "WKS::", PART_GC },
        { "SVR::", PART_GC },
        { "GCHeap", PART_GC },
        { "GCToEEInterface::", PART_GC },
        { "GCToOSInterface::", PART_GC },
        { "GCHandle", PART_GC },
        { "GCConfig", PART_GC },
        { "ThreadStore::SuspendAllThreads", PART_GC },
        { "ThreadStore::ResumeAllThreads", PART_GC },
        { "Thread::Hijack", PART_GC },
        { "RhpGcPoll", PART_GC },
        { "RhpGcProbe", PART_GC },
        { "RhpWaitForGC", PART_GC },
        { "RhCollect", PART_GC },
        { "RhpPInvoke", PART_PINVOKE },
        { "RhpReversePInvoke", PART_PINVOKE },
        { "Thread::ReversePInvoke", PART_PINVOKE },
        { "SystemNative_", PART_PINVOKE },
        { "CryptoNative_", PART_PINVOKE },
        { "GlobalizationNative_", PART_PINVOKE },
        { "CompressionNative_", PART_PINVOKE },
        { "NetSecurityNative_", PART_PINVOKE },
        { "Interop.", PART_PINVOKE },
        { "Interop+", PART_PINVOKE },
        { "RhpThrow", PART_EXCEPTIONS },
        { "RhpRethrow", PART_EXCEPTIONS },
        { "RhThrow", PART_EXCEPTIONS },
        { "RhRethrow", PART_EXCEPTIONS },
        { "RhpCallCatchFunclet", PART_EXCEPTIONS },
        { "RhpCallFinallyFunclet", PART_EXCEPTIONS },
        { "RhpCallFilterFunclet", PART_EXCEPTIONS },
        { "RhpSfi", PART_EXCEPTIONS },
        { "StackFrameIterator::", PART_EXCEPTIONS },
        { "UnixNativeCodeManager::", PART_EXCEPTIONS },
        { "System.Runtime.EH.", PART_EXCEPTIONS },
        { "RhpInterfaceDispatch", PART_DISPATCH },
        { "RhpInitialInterfaceDispatch", PART_DISPATCH },
        { "RhpInitialDynamicInterfaceDispatch", PART_DISPATCH },
        { "RhpVTableOffsetDispatch", PART_DISPATCH },
        { "RhpUniversalTransition", PART_DISPATCH },
        { "RhpCidResolve", PART_DISPATCH },
        { "RhpResolveInterface", PART_DISPATCH },
        { "System.Runtime.CachedInterfaceDispatch.", PART_DISPATCH },
        { "System.Runtime.DispatchResolve.", PART_DISPATCH },
        { "RhTypeCast_", PART_CASTS },
        { "System.Runtime.TypeCast.", PART_CASTS },
        { "System.Runtime.CompilerServices.CastHelpers.", PART_CASTS },
        { "Internal.Runtime.TypeLoader.", PART_TYPE_LOADER },
        { "Internal.TypeSystem.", PART_TYPE_LOADER },
        { "__DelegateCtor_", PART_STUB },
        { "__GenericLookupFrom", PART_STUB },
        { "__GetNonGCStaticBase_", PART_STUB },
        { "__GetGCStaticBase_", PART_STUB },
        { "__GetThreadStaticBase_", PART_STUB },
        { "__ResolveVirtualFunction", PART_STUB },
        { "<Module>.<DynamicInvoke>", PART_STUB },
        { "<Module>.None", PART_STUB },
};

/* Methods of delegates and value types that nobody wrote. */
static bool is_stub(const char *name) {
        const char *method = strrchr(name, '.');

        return method && (streq(method, ".__GetFieldHelper") || streq(method, ".GetThunk") ||
                          (startswith(method, ".Invoke") && endswith(method, "Thunk")));
}

const struct runtime_part *runtime_part(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if (startswith(name, prefixes[i].prefix))
                        return parts + prefixes[i].part;
        return is_stub(name) ? parts + PART_STUB : NULL;
}
