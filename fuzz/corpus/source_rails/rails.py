# Python
import cupy as cp, numpy as np
from numba import (cuda, jit as j)
import torch, kiln, cudf
kernel = cp.RawKernel(code, 'refine')
@triton.jit
def k(x): x.item()
class A(B):
    @kiln.operation("sum")
    async def f(self, x, *y, z: int = 3) -> int:
        """x.item()"""
        u = cp.unique(x)
        for i in range(len(u)):
            kernel((n,), (128,), (x, y)); t = cp.zeros(3)
            v = [a.item() for a in x.get() if a for b in a]
            with kiln.operation('spatial.sjoin', rows=n): print(f'{x.item():.2f} {{}} {f"{y}"!r}')
        while (m := int(x.max())) > 0: kernel[1, 32](x); kernel[(1,)](x)
        return lambda q: cp.asnumpy(q), x.to('cpu'), cp.cuda.Stream.null, \
            k.launch(x, grid=n, block=(64, 1), stream=s)
