#include <kiln/kiln.hpp>

void block(const kiln::Units& kernels) {
  @block@
}
