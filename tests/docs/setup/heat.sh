# A project that contains its kernels, around the page's CMake lines; and an installed kiln.
if [ "$FIRST" = 1 ]; then
  cp -r "$ROOT"/examples/embedded/kernels "$ROOT"/examples/embedded/kiln.toml .
  echo 'int heat() { return 0; }' >heat.cpp
  printf 'cmake_minimum_required(VERSION 3.16)\nproject(heat LANGUAGES CXX ASM)\ninclude(heat.cmake)\n' >CMakeLists.txt
  cmake --install "$BUILD" --prefix "$PWD/prefix"
fi
export CMAKE_PREFIX_PATH=$PWD/prefix
