# Sample traces of other profilers, as docs/internals/trace-format.md generates them.
mkdir -p tests/analysis && ln -s "$ROOT/tests/analysis/samples" tests/analysis/samples
