# cuda-cccl as installed by pip. Pages share a cache here, like programs of a host: each algorithm takes seconds to compile.
if [ -e "$ROOT/.venv/bin/activate" ]; then . "$ROOT/.venv/bin/activate"; fi
export KILN_CACHE_DIR=$SHARED/cache
