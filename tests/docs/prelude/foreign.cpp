// A program with keys and a compiler of its own.
#include <chrono>
#include <string>
#include <kiln/foreign.hpp>
#include <kiln/kiln.hpp>
kiln::Bytes compile();
int block(kiln::Session& session, const std::string& key, double cost_in_ms) {
@block@
  return 0;
}
