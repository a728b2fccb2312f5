# The Python environment that tools/setup.sh makes.
if [ -e "$ROOT/.venv/bin/activate" ]; then . "$ROOT/.venv/bin/activate"; fi
