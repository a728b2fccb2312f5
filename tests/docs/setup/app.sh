# Builds ./app, a real program that uses the project.
if [ "$FIRST" = 1 ]; then
  kiln bundle header kiln.toml -o project_units.hpp
  g++ -std=c++17 -O0 -I"$ROOT/include" -I. "$ROOT/tests/docs/app.cpp" -L"$BUILD/lib" -lkiln -Wl,-rpath,"$BUILD/lib" -o app
  cp app program
fi
