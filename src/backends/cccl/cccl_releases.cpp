// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_library.hpp"

namespace kiln {

// The parameters of each release were read in its package, and each was tested with real compiles. The id is the same
// in the wheels of all Python versions. The newest release comes first.
const std::vector<CcclRelease>& cccl_releases() {
  static const std::vector<CcclRelease> kReleases = {
      {"736d11d47f4db5155aa641925867a48f1b295e20", "1.2.1", 3006000, 13, false},
      {"a45783a826cc0ac80ab8d5cd96b5a89af288eaeb", "1.2.1", 3006000, 12, false},
      {"8944da77eff0000f9fa356894f633bb7324546fd", "1.2.0", 3006000, 13, false},
      {"9d9e025af53089a0f980ea41c5b09b531eb6c8e0", "1.2.0", 3006000, 12, false},
      {"1c2ce2a4e7560719fb398aca3e8a4e8e663545c0", "1.1.1", 3005000, 13, true},
      {"9693d51bdee3f4ce689d440afa206389a8a0dcd6", "1.1.1", 3005000, 12, true},
      {"2263a59b8b00b203f0a22169a28568ac181748f0", "1.1.0", 3005000, 13, true},
      {"f3223db4cdb02ee8b61b3c8ac0b6566f26b9ffe3", "1.1.0", 3005000, 12, true},
  };
  return kReleases;
}

const CcclRelease* cccl_parameters_for(int headers) {
  for (const CcclRelease& release : cccl_releases()) {
    if (release.headers <= headers) return &release;
  }
  return nullptr;
}

}  // namespace kiln
