// A function of the program of docs/tutorials/cuda.md.
#include <vector>
#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>
kiln::Unit poly(int degree);
void block(kiln::Session& session, const kiln::Units& all) {
@block@
}
