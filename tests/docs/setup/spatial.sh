# Pages that run the spatial example share a cache, like programs of a host: PoCL takes seconds to compile its kernels.
# PoCL is a CPU device, which the modes gpu and auto use only with permission.
export KILN_ALLOW_CPU_DEVICE=1 KILN_CACHE_DIR=$SHARED/cache POCL_CACHE_DIR=$SHARED/pocl
printf '#!/bin/sh\nexec spatial demo --points 2000 --polygons 50 --backend opencl\n' >spatial-app
chmod +x spatial-app
