# The Python environment that tools/setup.sh creates.
if [ -e "$ROOT/.venv/bin/activate" ]; then . "$ROOT/.venv/bin/activate"; fi
