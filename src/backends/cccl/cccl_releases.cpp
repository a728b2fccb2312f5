#include "backends/cccl/cccl_library.hpp"

namespace kiln {

// Each release was tested with real compiles. The id is the same in the wheels of all Python versions.
const std::vector<CcclRelease>& cccl_releases() {
  static const std::vector<CcclRelease> kReleases = {
      {"736d11d47f4db5155aa641925867a48f1b295e20", "1.2.1", 3006000, 13, false},
      {"8944da77eff0000f9fa356894f633bb7324546fd", "1.2.0", 3006000, 13, false},
      {"1c2ce2a4e7560719fb398aca3e8a4e8e663545c0", "1.1.1", 3005000, 13, true},
      {"2263a59b8b00b203f0a22169a28568ac181748f0", "1.1.0", 3005000, 13, true},
  };
  return kReleases;
}

}  // namespace kiln
