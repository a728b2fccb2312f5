# cuda-cccl as pip installs it. Pages share a cache here, as programs of a host do: each algorithm takes seconds to compile.
if [ -e "$ROOT/.venv/bin/activate" ]; then . "$ROOT/.venv/bin/activate"; fi
export KILN_CACHE_DIR=$SHARED/cache
