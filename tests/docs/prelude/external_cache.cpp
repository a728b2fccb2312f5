// A program that has its own keys and its own compiler.
#include <chrono>
#include <string>
#include <kiln/external_cache.hpp>
#include <kiln/kiln.hpp>
kiln::Bytes compile();
int block(kiln::Session& session, const std::string& key, double cost_in_ms) {
@block@
  return 0;
}
