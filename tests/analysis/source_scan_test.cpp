// SPDX-License-Identifier: Apache-2.0
// The search for rails in single sources: which places, at which line, in which function and at which loop depth.
#include <gtest/gtest.h>

#include "analysis/source/rail_scan.hpp"

namespace kiln::source {
namespace {

using Found = std::vector<std::string>;

// Returns `3 host_read f 1` for a hit on line 3 in f at loop depth 1.
Found found_in(std::string_view text, Language language) {
  Found found;
  for (const Hit& hit : scan_source(text, language).hits) {
    found.push_back(std::to_string(hit.line) + ' ' + to_string(hit.rail) + ' ' +
                    (hit.function.empty() ? "-" : hit.function) + ' ' + std::to_string(hit.loops));
  }
  return found;
}
Found in_cuda(std::string_view text) { return found_in(text, Language::Cuda); }
Found in_python(std::string_view text) { return found_in(text, Language::Python); }

TEST(SourceScan, FindsHostReadsInCuda) {
  EXPECT_EQ(in_cuda("#include <cuda_runtime.h>\n"
                    "void f(int* d, int* h) {\n"
                    "  cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice);\n"
                    "  cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost);\n"
                    "  cudaMemcpyAsync(h, d, 4,\n"
                    "                  cudaMemcpyDeviceToHost, stream);\n"
                    "  cuMemcpyDtoH(h, p, 4);\n"
                    "  cudaMemcpyFromSymbol(h, s, 4);\n"
                    "}\n"),
            (Found{"4 host_read f 0", "5 host_read f 0", "7 host_read f 0", "8 host_read f 0"}));
  EXPECT_EQ(in_cuda("#include <torch/torch.h>\nint f(at::Tensor x) {\n  return x.item<int>();\n  y = x.cpu();\n"
                    "  z = x.to(torch::kCPU);\n  w = x.to(torch::kCUDA);\n}\n"),
            (Found{"3 host_read f 0", "4 host_read f 0", "5 host_read f 0"}));
  EXPECT_EQ(in_cuda("#include <thrust/host_vector.h>\nvoid f() {\n  thrust::host_vector<int> n(8);\n"
                    "  thrust::host_vector<int> h = d;\n  thrust::copy(d.begin(), d.end(), h.begin());\n"
                    "  thrust::copy(d.begin(), d.end(), e.begin());\n}\n"),
            (Found{"4 host_read f 0", "5 host_read f 0"}));
  EXPECT_EQ(in_cuda("#include <kiln/kiln.hpp>\nvoid f() {\n  stream.download(&n, buffer, 4);\n}\n"),
            (Found{"3 host_read f 0"}));
}

TEST(SourceScan, NamesOfOtherLibrariesAreNoHits) {
  EXPECT_EQ(
      in_cuda("// cuda\nint f() { return x.item(); y.cpu(); z.download(1); w.value(stream); v.synchronize(); }\n"),
      Found{});
  EXPECT_EQ(in_python("import cudf_not\nimport queue\nd = {}\nd.get()\nx.item()\ny.to_pandas()\nz.tolist()\n"),
            Found{});
  EXPECT_EQ(in_python("import cupy\nd.get('key')\nwork_queue.get()\nos.environ.get('A')\nx.item(0)\n"), Found{});
}

TEST(SourceScan, FindsSynchronization) {
  EXPECT_EQ(in_cuda("void A::run() const {\n  cudaDeviceSynchronize();\n  for (;;) cudaStreamSynchronize(s);\n"
                    "  cuCtxSynchronize();\n  launch(cudaStreamLegacy);\n}\n"),
            (Found{"2 synchronization A::run 0", "3 synchronization A::run 1", "4 synchronization A::run 0",
                   "5 synchronization A::run 0"}));
  EXPECT_EQ(
      in_python("import torch\nimport cupy as cp\ndef f(s):\n    torch.cuda.synchronize()\n    s.synchronize()\n"
                "    cp.cuda.Stream.null.synchronize()\n    g(stream=cp.cuda.Stream.null)\n    a.null\n"),
      (Found{"4 synchronization f 0", "5 synchronization f 0", "6 synchronization f 0", "7 synchronization f 0"}));
}

TEST(SourceScan, FindsHostReadsAndMaterializationInPython) {
  EXPECT_EQ(in_python("import cupy as cp, cudf\nfrom numba import cuda\nclass A:\n    def f(self, x):\n"
                      "        x.item()\n        x.get()\n        x.tolist()\n        x.copy_to_host()\n"
                      "        cp.asnumpy(x)\n        x.to_pandas()\n        x.to_arrow()\n        x.to_numpy()\n"),
            (Found{"5 host_read A.f 0", "6 host_read A.f 0", "7 host_read A.f 0", "8 host_read A.f 0",
                   "9 materialization A.f 0", "10 materialization A.f 0", "11 materialization A.f 0",
                   "12 materialization A.f 0"}));
  EXPECT_EQ(in_python("import torch\nx.cpu()\nx.to('cpu')\nx.to('cuda')\nx.numpy()\n"),
            (Found{"2 host_read - 0", "3 host_read - 0", "5 host_read - 0"}));
  EXPECT_EQ(in_python("import torch\nprint(f'loss {loss.item():.2f} of {total}')\n"), (Found{"2 host_read - 0"}));
}

TEST(SourceScan, CountsLoopsOfCuda) {
  EXPECT_EQ(in_cuda("void f() {\n"
                    "  for (int i = read(cudaDeviceSynchronize()); i < 3; ++i) {\n"  // the first part runs once
                    "    while (x)\n"
                    "      do {\n"
                    "        cudaDeviceSynchronize();\n"
                    "      } while (more());\n"
                    "    cudaDeviceSynchronize();\n"
                    "    if (x) { y(); } else cudaDeviceSynchronize();\n"
                    "  }\n"
                    "  for (auto& a : all) for (auto& b : a) cudaDeviceSynchronize();\n"
                    "  for (auto& a : all) if (a) { b(); } else { c(); cudaDeviceSynchronize(); }\n"
                    "  cudaDeviceSynchronize();\n"
                    "}\n"),
            (Found{"2 synchronization f 0", "5 synchronization f 3", "7 synchronization f 1", "8 synchronization f 1",
                   "10 synchronization f 2", "11 synchronization f 1", "12 synchronization f 0"}));
}

TEST(SourceScan, CountsLoopsOfPython) {
  EXPECT_EQ(in_python("import torch\n"
                      "def f(xs):\n"
                      "    for a in xs.cpu():\n"  // evaluated once
                      "        for b in a:\n"
                      "            b.item()\n"
                      "        a.item()\n"
                      "    else:\n"
                      "        a.item()\n"
                      "    while x: x.item()\n"
                      "    y = [z.item() for z in xs]\n"
                      "    return xs.item()\n"),
            (Found{"3 host_read f 0", "3 device_range_loop f 1", "5 host_read f 2", "6 host_read f 1",
                   "8 host_read f 0", "9 host_read f 1", "10 host_read f 1", "11 host_read f 0"}));
}

TEST(SourceScan, FindsLoopsThatDeviceDrives) {
  EXPECT_EQ(in_cuda("void f() {\n"
                    "  int h_count = 0;\n"
                    "  cudaMemcpy(&h_count, d_count, 4, cudaMemcpyDeviceToHost);\n"
                    "  const int groups = h_count + 1;\n"
                    "  for (int i = 0; i < groups; ++i) g(i);\n"
                    "  for (int i = 0; i < n; ++i) g(i);\n"
                    "  for (int i = 0; i < h_count->rows.size(); ++i) g(i);\n"
                    "}\n"
                    "void other(int groups) {\n"
                    "  for (int i = 0; i < groups; ++i) g(i);\n"
                    "}\n"),
            (Found{"3 host_read f 0", "5 device_range_loop f 1"}));
  EXPECT_EQ(in_cuda("void f() {\n  bool changed = true;\n  while (changed) {\n"
                    "    cudaMemcpy(&changed, d, 1, cudaMemcpyDeviceToHost);\n  }\n}\n"),
            (Found{"3 device_range_loop f 1", "4 host_read f 1"}));
  EXPECT_EQ(in_python("import cupy as cp\nimport numpy as np\n"
                      "def f(x, offsets):\n"
                      "    for i in range(int(x.max())): pass\n"
                      "    for g in cp.unique(x): pass\n"
                      "    u = cp.unique(x)\n"
                      "    for i in range(len(u)): pass\n"
                      "    n = int(cp.sum(x))\n"
                      "    for i in range(n): pass\n"
                      "    h = np.arange(4)\n"
                      "    for i in range(int(h.max())): pass\n"
                      "    for i in range(x.shape[0]): pass\n"
                      "    for d in range(cp.cuda.runtime.getDeviceCount()): pass\n"
                      "    for a in (u, x): pass\n"
                      "    arrays = [cp.zeros(4), u]\n"
                      "    for a in arrays: pass\n"),
            (Found{"4 device_range_loop f 1", "5 device_range_loop f 1", "7 device_range_loop f 1", "8 host_read f 0",
                   "9 device_range_loop f 1"}));
}

TEST(SourceScan, FindsConstantLaunchShapes) {
  EXPECT_EQ(in_cuda("#define BLOCK 128\n"
                    "void f(int n, int b) {\n"
                    "  k<<<1, n>>>(x);\n"
                    "  k<<<n, 32, 0, s>>>(x);\n"
                    "  k<T><<<dim3(n), dim3(16, 16)>>>(x);\n"
                    "  k<<<n, BLOCK>>>(x);\n"
                    "  const int threads = 256;\n"
                    "  k<<<(n + threads - 1) / threads, threads>>>(x);\n"
                    "  k<<<n, b>>>(x);\n"
                    "  cuLaunchKernel(k, n, 1, 1, 256, 1, 1, 0, s, a, e);\n"
                    "}\n"
                    "void g(int n) {\n"
                    "  int block = 256;\n"
                    "  cudaOccupancyMaxPotentialBlockSize(&grid, &block, k);\n"
                    "  k<<<n, block>>>(x);\n"
                    "}\n"
                    "void h(int n) {\n"
                    "  int block = 32;\n"
                    "  block *= 2;\n"
                    "  k<<<n, block>>>(x);\n"
                    "}\n"),
            (Found{"3 launch_shape f 0", "4 launch_shape f 0", "5 launch_shape f 0", "6 launch_shape f 0",
                   "8 launch_shape f 0", "10 launch_shape f 0"}));
  EXPECT_EQ(in_python("import cupy\nfrom numba import cuda\n"
                      "kernel[1, 32](x)\n"
                      "kernel[(1,), (32,)](x)\n"
                      "kernel[blocks, threads](x)\n"
                      "raw((n,), (128,), (x, y))\n"
                      "raw((n,), (block,), (x, y))\n"
                      "table[0](x)\n"),
            (Found{"3 launch_shape - 0", "4 launch_shape - 0", "6 launch_shape - 0"}));
  EXPECT_EQ(in_python("import kiln\nk.launch(x, grid=n, block=64, stream=s)\nk.launch(x, grid=n, block=b, stream=s)\n"),
            (Found{"2 launch_shape - 0"}));
}

TEST(SourceScan, FindsAllocationsInLoopsOnly) {
  EXPECT_EQ(in_cuda("void f() {\n  cudaMalloc(&p, 4);\n  for (int i = 0; i < 3; ++i) {\n    cudaMalloc(&p, 4);\n"
                    "    cudaFree(p);\n  }\n}\n"),
            (Found{"4 allocation_in_loop f 1", "5 allocation_in_loop f 1"}));
  EXPECT_EQ(
      in_python("import cupy as cp\nimport numpy as np\nx = cp.zeros(4)\nfor i in range(3):\n    y = cp.zeros(4)\n"
                "    z = np.zeros(4)\n    pool.free_all_blocks()\n"),
      (Found{"5 allocation_in_loop - 1", "7 allocation_in_loop - 1"}));
}

TEST(SourceScan, CommentsAndStringsAreNoHits) {
  EXPECT_EQ(in_cuda("void f() {\n  // cudaDeviceSynchronize();\n  /* for (;;)\n cudaDeviceSynchronize(); */\n"
                    "  s = \"cudaDeviceSynchronize();\";\n  t = R\"x(cudaDeviceSynchronize();)x\";\n"
                    "#if 0\n  cudaDeviceSynchronize();\n#endif\n  cudaDeviceSynchronize();\n}\n"
                    "cudaError_t cudaDeviceSynchronize();\n"),
            (Found{"10 synchronization f 0"}));
  EXPECT_EQ(in_python("import torch\n# x.item()\n'x.item()'\nr'''\nx.item()\n'''\ndef f():\n    \"\"\"x.item()\n"
                      "for i in x.item():\n    \"\"\"\n    x.item()\n"),
            (Found{"11 host_read f 0"}));
}

TEST(SourceScan, DefinitionsOfTheNamesAreNoHits) {
  EXPECT_EQ(in_cuda("#include <kiln/kiln.hpp>\nStatus Stream::synchronize() const {\n  return {};\n}\n"), Found{});
  EXPECT_EQ(in_python("import torch\nclass A:\n    def synchronize(self):\n        pass\n"), Found{});
}

TEST(SourceScan, MacrosCountAsFunctions) {
  EXPECT_EQ(
      in_cuda("#define SYNC(s) \\\n  do {                      \\\n    cudaStreamSynchronize(s); \\\n  } while (0)\n"),
      (Found{"3 synchronization #define SYNC 0"}));
}

TEST(SourceScan, KernelsHaveNoHits) {
  EXPECT_EQ(in_cuda("__global__ void k(int n) {\n  for (;;) cudaDeviceSynchronize();\n}\n"
                    "__host__ __device__ void b() {\n  cudaDeviceSynchronize();\n}\n"),
            (Found{"5 synchronization b 0"}));
  EXPECT_EQ(in_python("import torch, triton\n@triton.jit\ndef k(x):\n    x.item()\ndef f(x):\n    x.item()\n"),
            (Found{"6 host_read f 0"}));
}

TEST(SourceScan, NamesTheFunction) {
  EXPECT_EQ(
      in_cuda("namespace a {\nstruct S : B<int> {\n  S() : x{1}, y(2) {\n    cudaDeviceSynchronize();\n  }\n"
              "  template <class T>\n  auto m(T t) const -> std::vector<T> {\n    cudaDeviceSynchronize();\n  }\n};\n"
              "const auto run = [](int x) {\n  cudaDeviceSynchronize();\n};\n}\n"
              "struct OLD(\"x\") T {\n  void n() {\n    cudaDeviceSynchronize();\n  }\n};\n"),
      (Found{"4 synchronization S 0", "8 synchronization m 0", "12 synchronization run 0", "17 synchronization n 0"}));
  EXPECT_EQ(in_python("import torch\nclass A:\n    async def m(self):\n        def inner():\n            x.item()\n"
                      "        x.item()\nx.item()\n"),
            (Found{"5 host_read A.m.inner 0", "6 host_read A.m 0", "7 host_read - 0"}));
}

TEST(SourceScan, CommentSuppressesHitsOfItsLine) {
  const FileScan scan = scan_source(
      "void f() {\n  cudaDeviceSynchronize();  // kiln-audit: ignore, the end of the program\n  "
      "cuCtxSynchronize();\n}\n",
      Language::Cuda);
  ASSERT_EQ(scan.hits.size(), 1U);
  EXPECT_EQ(scan.hits[0].line, 3U);
  EXPECT_EQ(scan.suppressed, 1U);
  EXPECT_EQ(in_python("import torch\nx.item()  # kiln-audit: ignore\n"), Found{});
}

TEST(SourceScan, LineHasOneHitPerRailWithItsText) {
  const FileScan scan =
      scan_source("void f() {\n\t cudaDeviceSynchronize(); cuCtxSynchronize();  \n}\n", Language::Cuda);
  ASSERT_EQ(scan.hits.size(), 1U);
  EXPECT_EQ(scan.hits[0].text, "cudaDeviceSynchronize(); cuCtxSynchronize();");
  const std::string line = "cudaDeviceSynchronize(); // " + std::string(10'000, 'x');
  EXPECT_LT(scan_source("void f() {\n" + line + "\n}\n", Language::Cuda).hits[0].text.size(), 170U);
}

TEST(SourceScan, AcceptsBrokenSources) {
  for (const char* text : {"cuda void f() { for (", "cuda ) } ] {{{{", "cuda f(]{)} for (;;", "cuda k<<<1, 2",
                           "#define", "cuda R\"(", "cuda '", "\"", "<<<"}) {
    (void)scan_source(text, Language::Cuda);
  }
  for (const char* text :
       {"import torch\ndef", "import torch\ndef f(", "import torch\n'''", "import torch\nf'{", "from torch",
        "import torch\nfor", "import torch\n@", "import torch\n[x for", "import torch\n\\"}) {
    (void)scan_source(text, Language::Python);
  }
}

TEST(SourceScan, AcceptsDeepNesting) {
  const auto repeated = [](std::string_view part, std::size_t count) {
    std::string text = "import torch\n// cuda\n";
    for (std::size_t i = 0; i < count; ++i) text += part;
    return text;
  };
  // No recursion, and no search that is quadratic.
  for (const char* part :
       {"for(;;)", "f(", "{", "cudaMemcpy(", "<", "host_vector<int>h(", "while([&]{", "a{1},", "<<<"}) {
    (void)scan_source("void f() {" + repeated(part, 10'000), Language::Cuda);
    (void)scan_source(repeated(part, 10'000), Language::Cuda);
  }
  for (const char* part : {"[x for ", "f'{", "int(", "lambda:", "x=", "(", "k[1,2](", "@a\n", "for x in "}) {
    (void)scan_source(repeated(part, 10'000), Language::Python);
  }
}

TEST(SourceScan, BaseNameDropsTypesAndArguments) {
  EXPECT_EQ(base_name("void a::refine<4, int>(float*, int)"), "refine");
  EXPECT_EQ(base_name("refine"), "refine");
  EXPECT_EQ(base_name("A.method"), "method");
  EXPECT_EQ(base_name(""), "");
}

}  // namespace
}  // namespace kiln::source
