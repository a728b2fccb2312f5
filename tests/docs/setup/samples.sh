# Sample traces of other profilers, as docs/foreign-traces.md generates them.
mkdir -p tests/analysis && ln -s "$ROOT/tests/analysis/samples" tests/analysis/samples
