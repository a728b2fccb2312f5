// The target that builds the precompiled header of the tests.
int main() { return 0; }
