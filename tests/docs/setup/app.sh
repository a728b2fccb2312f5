# ./app is a real program on top of the project.
if [ "$FIRST" = 1 ]; then
  kiln bundle units kiln.toml -o project_units.hpp
  g++ -std=c++17 -O0 -I"$ROOT/include" -I. "$ROOT/tests/docs/app.cpp" -L"$BUILD/lib" -lkiln -Wl,-rpath,"$BUILD/lib" -o app
  cp app program
fi
